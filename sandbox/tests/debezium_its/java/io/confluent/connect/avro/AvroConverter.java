package io.confluent.connect.avro;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Map;

import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.storage.Converter;

import io.confluent.kafka.schemaregistry.client.SchemaRegistryClient;

/**
 * Stands where Debezium's test helpers expect Confluent's converter, which is not published beside Debezium's jars.
 * It keeps that converter's frame (a zero and the schema's number) around JSON with its schema: records still make a
 * round trip, but not through Avro.
 */
public class AvroConverter implements Converter {

    private static final int FRAME = 1 + Integer.BYTES;

    private final JsonConverter json = new JsonConverter();

    public AvroConverter() {
        json.configure(Map.of("schemas.enable", true), false);
    }

    public AvroConverter(SchemaRegistryClient registry) {
        this();
    }

    @Override
    public void configure(Map<String, ?> settings, boolean isKey) {
    }

    @Override
    public byte[] fromConnectData(String topic, Schema schema, Object value) {
        if (value == null) {
            return null;
        }
        byte[] content = json.fromConnectData(topic, schema, value);
        return ByteBuffer.allocate(FRAME + content.length).put((byte) 0).putInt(1).put(content).array();
    }

    @Override
    public SchemaAndValue toConnectData(String topic, byte[] bytes) {
        return bytes == null ? SchemaAndValue.NULL : json.toConnectData(topic, Arrays.copyOfRange(bytes, FRAME, bytes.length));
    }
}

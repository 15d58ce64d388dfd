package io.confluent.kafka.schemaregistry.client;

/** A name that Debezium's test helpers link against; see the converter beside it. */
public interface SchemaRegistryClient {
}

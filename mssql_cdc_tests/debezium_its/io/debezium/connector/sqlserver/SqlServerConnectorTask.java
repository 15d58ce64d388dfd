package io.debezium.connector.sqlserver;

import java.io.*;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;

import javax.management.*;
import javax.management.openmbean.*;

import org.apache.kafka.connect.data.*;
import org.apache.kafka.connect.errors.*;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.source.*;
import org.slf4j.*;

import com.fasterxml.jackson.databind.*;
import com.fasterxml.jackson.databind.node.*;

/**
 * Runs `mssql-cdc records --follow` in the place of Debezium's task, so that Debezium's own integration tests test it.
 *
 * Records come from its standard output, log lines and metrics (as JMX beans) from its standard error; offsets go to it as
 * a file at the start, and as commands. Its state directory belongs to the file of the schema history, which tests delete.
 * Not here: signals and notifications over JMX, extensions that are Java classes.
 */
public class SqlServerConnectorTask extends SourceTask {
    private static final Logger LOGGER = LoggerFactory.getLogger(SqlServerConnectorTask.class);
    private static final ObjectMapper JSON = new ObjectMapper();
    private final BlockingQueue<SourceRecord> queue = new LinkedBlockingQueue<>(8192);
    private final CountDownLatch started = new CountDownLatch(1);
    private final Map<Map<String, ?>, Map<String, ?>> done = new LinkedHashMap<>();
    private final Map<String, Bean> beans = new ConcurrentHashMap<>();
    private volatile Process process;
    private volatile boolean stopping, good;
    private volatile JsonNode error;
    private Thread out, err;
    private String server, taskId;
    private JsonConverter keys = new JsonConverter(), values = new JsonConverter();
    private BufferedWriter control;

    public String version() {
        return "mssql-cdc";
    }

    public void start(Map<String, String> props) {
        keys.configure(Map.of("schemas.enable", "true"), true);
        values.configure(Map.of("schemas.enable", "true"), false);
        server = props.get("topic.prefix");
        taskId = props.getOrDefault("task.id", "0");
        try {
            launch(props);
        }
        catch (IOException e) {
            throw new ConnectException(e);
        }
        for (String db : props.get("database.names").split(",")) {
            bean("snapshot", db.trim());
            bean("streaming", db.trim());
        }
        try {
            if (!started.await(90, TimeUnit.SECONDS)) {
                throw new ConnectException("not started");
            }
        }
        catch (InterruptedException e) {
            stop();
            throw new ConnectException(e);
        }
        if (!good) {
            fail();
        }
    }

    private void launch(Map<String, String> props) throws IOException {
        Path history = Paths.get(props.getOrDefault("schema.history.internal.file.filename", Files.createTempFile("hist", "").toString()));
        boolean memory = !props.getOrDefault("schema.history.internal", "").contains("FileSchemaHistory");
        Path state = memory ? Files.createTempDirectory("state") : Paths.get(history + ".state" + taskId);
        if (!memory && !Files.exists(history) && Files.exists(state)) {
            wipe(state);
        }
        Files.createDirectories(state);
        if (!memory && !Files.exists(history)) {
            Files.createDirectories(history.getParent());
            Files.writeString(history, "");
        }
        Path dir = Files.createTempDirectory("mssql-cdc");
        Map<String, String> config = new TreeMap<>(props);
        config.putIfAbsent("connector.class", "io.debezium.connector.sqlserver.SqlServerConnector");
        Files.writeString(dir.resolve("connector.json"), JSON.writeValueAsString(config));
        List<String> command = new ArrayList<>(List.of(System.getenv().getOrDefault("MSSQL_CDC_COMMAND", "mssql-cdc"), "records", "--follow",
                "--config", dir.resolve("connector.json").toString(), "--state-dir", state.toString(), "--task-id", taskId));
        ArrayNode offsets = JSON.createArrayNode();
        for (String db : props.get("database.names").split(",")) {
            Map<String, String> partition = new LinkedHashMap<>();
            partition.put("server", server);
            partition.put("database", db.trim());
            Map<String, Object> offset = context.offsetStorageReader().offset(partition);
            if (offset != null) {
                ObjectNode one = offsets.addObject();
                one.set("partition", JSON.valueToTree(partition));
                one.set("offset", JSON.valueToTree(offset));
            }
        }
        if (offsets.size() > 0) {
            Path file = dir.resolve("offsets.json");
            Files.writeString(file, JSON.createObjectNode().set("offsets", offsets).toString());
            command.addAll(List.of("--offsets", file.toString()));
        }
        LOGGER.info("mssql-cdc: {} offsets {}", command, offsets);
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().put("MSSQL_CDC_CONTROL", "stdin");
        process = builder.start();
        control = new BufferedWriter(new OutputStreamWriter(process.getOutputStream(), StandardCharsets.UTF_8));
        out = new Thread(this::readRecords, "mssql-cdc-records");
        err = new Thread(this::readEvents, "mssql-cdc-events");
        out.start();
        err.start();
    }

    private static void wipe(Path dir) throws IOException {
        try (var all = Files.walk(dir)) {
            for (Path one : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(one);
            }
        }
    }

    private void readRecords() {
        try (BufferedReader reader = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            String line;
            while ((line = reader.readLine()) != null) {
                queue.put(record(JSON.readTree(line)));
            }
        }
        catch (InterruptedException e) {
        }
        catch (Throwable e) {
            if (!stopping) {
                LOGGER.error("mssql-cdc: reading records", e);
            }
        }
    }

    private SchemaAndValue connect(JsonConverter converter, String topic, JsonNode node) throws IOException {
        if (node == null || node.isNull()) {
            return SchemaAndValue.NULL;
        }
        return converter.toConnectData(topic, JSON.writeValueAsBytes(node));
    }

    private SourceRecord record(JsonNode node) throws IOException {
        String topic = node.get("topic").asText();
        SchemaAndValue key = connect(keys, topic, node.get("key"));
        SchemaAndValue value = connect(values, topic, node.get("value"));
        ConnectHeaders headers = new ConnectHeaders();
        JsonNode given = node.get("headers");
        if (given != null) {
            for (Iterator<Map.Entry<String, JsonNode>> i = given.fields(); i.hasNext();) {
                Map.Entry<String, JsonNode> one = i.next();
                headers.add(one.getKey(), connect(values, topic, one.getValue()));
            }
        }
        Integer partition = node.get("partition") == null || node.get("partition").isNull() ? null : node.get("partition").asInt();
        Long timestamp = node.get("timestamp") == null || node.get("timestamp").isNull() ? null : node.get("timestamp").asLong();
        return new SourceRecord(partition(node.get("sourcePartition")), map(node.get("sourceOffset")), topic, partition, key.schema(), key.value(),
                value.schema(), value.value(), timestamp, headers);
    }

    private Map<String, Object> partition(JsonNode node) {
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("server", node.get("server").asText());
        found.put("database", node.get("database").asText());
        return found;
    }

    private Map<String, Object> map(JsonNode node) {
        Map<String, Object> found = new LinkedHashMap<>();
        for (Iterator<Map.Entry<String, JsonNode>> i = node.fields(); i.hasNext();) {
            Map.Entry<String, JsonNode> one = i.next();
            found.put(one.getKey(), plain(one.getValue()));
        }
        return found;
    }

    static Object plain(JsonNode value) {
        return value.isNull() ? null : value.isBoolean() ? (Object) value.asBoolean() : value.isIntegralNumber() ? (Object) value.asLong()
                : value.isFloatingPointNumber() ? (Object) value.asDouble() : value.isTextual() ? value.asText() : value.toString();
    }

    private void readEvents() {
        try (BufferedReader reader = new BufferedReader(new InputStreamReader(process.getErrorStream(), StandardCharsets.UTF_8))) {
            String line;
            while ((line = reader.readLine()) != null) {
                try {
                    event(JSON.readTree(line), line);
                }
                catch (Exception e) {
                    LOGGER.error("mssql-cdc: not an event: {}", line, e);
                }
            }
        }
        catch (IOException e) {
        }
        int code = -1;
        try {
            code = process.waitFor();
        }
        catch (InterruptedException e) {
        }
        LOGGER.info("mssql-cdc: ended with {}", code);
        started.countDown();
    }

    private void event(JsonNode event, String line) throws Exception {
        String kind = event.get("event").asText();
        String database = event.path("database").asText("");
        switch (kind) {
            case "started":
                good = true;
                started.countDown();
                break;
            case "metrics":
                bean(event.get("context").asText(), database).update(event.get("values"));
                return;
            case "error":
                error = event;
                break;
            case "log":
                Logger logger = LoggerFactory.getLogger(event.get("logger").asText());
                String message = event.get("message").asText();
                switch (event.get("level").asText()) {
                    case "WARN": logger.warn(message); break;
                    case "ERROR": logger.error(message); break;
                    default: logger.info(message);
                }
                return;
            default:
        }
        LOGGER.info("mssql-cdc: {}", line);
    }

    private Bean bean(String context, String database) {
        return beans.computeIfAbsent(context + "/" + database, name -> {
            Bean made = new Bean(context);
            String base = "debezium.sql_server:type=connector-metrics,context=" + context + ",server=" + server + ",task=" + taskId;
            made.register(base);
            made.register(base + ",database=" + database);
            return made;
        });
    }

    private void fail() {
        if (error == null) {
            throw new ConnectException("mssql-cdc ended");
        }
        String message = error.path("message").asText();
        if (error.path("retriable").asBoolean()) {
            throw new RetriableException(message);
        }
        throw new ConnectException(message);
    }

    public List<SourceRecord> poll() throws InterruptedException {
        List<SourceRecord> found = new ArrayList<>();
        SourceRecord first = queue.poll(200, TimeUnit.MILLISECONDS);
        if (first != null) {
            found.add(first);
            queue.drainTo(found, 2047);
            return found;
        }
        if (!process.isAlive() && !out.isAlive() && queue.isEmpty()) {
            err.join(2000);
            if (process.exitValue() != 0 && !stopping) {
                fail();
            }
        }
        return null;
    }

    public void commitRecord(SourceRecord record, org.apache.kafka.clients.producer.RecordMetadata metadata) {
        synchronized (done) {
            done.put(record.sourcePartition(), record.sourceOffset());
        }
    }

    public void commit() {
        try {
            ObjectNode command = JSON.createObjectNode().put("command", "commit");
            ArrayNode offsets = command.putArray("offsets");
            synchronized (done) {
                if (done.isEmpty()) {
                    return;
                }
                done.forEach((partition, offset) -> {
                    ObjectNode one = offsets.addObject();
                    one.set("partition", JSON.valueToTree(partition));
                    one.set("offset", JSON.valueToTree(offset));
                });
                done.clear();
            }
            control.write(command.toString());
            control.newLine();
            control.flush();
        }
        catch (IOException e) {
            LOGGER.warn("mssql-cdc: commit", e);
        }
    }

    public void stop() {
        stopping = true;
        if (process != null) {
            process.destroy();
            try {
                long began = System.nanoTime();
                if (!process.waitFor(10, TimeUnit.SECONDS)) {
                    LOGGER.error("mssql-cdc: did not end");
                    process.destroyForcibly();
                }
                LOGGER.info("mssql-cdc: stopped in {} ms", (System.nanoTime() - began) / 1000000);
                out.interrupt();
                err.join(2000);
            }
            catch (InterruptedException e) {
                process.destroyForcibly();
            }
        }
        beans.values().forEach(Bean::unregister);
    }

    static class Bean implements DynamicMBean {
        private static final Set<String> INTS = Set.of("TotalTableCount", "RemainingTableCount", "QueueTotalCapacity", "QueueRemainingCapacity");
        private final Map<String, Object> values = new ConcurrentHashMap<>();
        private final List<ObjectName> names = new ArrayList<>();

        Bean(String context) {
            if (context.equals("snapshot")) {
                for (String flag : List.of("SnapshotRunning", "SnapshotCompleted", "SnapshotAborted", "SnapshotPaused", "SnapshotSkipped")) {
                    values.put(flag, false);
                }
            }
            else {
                values.put("Connected", false);
            }
        }

        void register(String text) {
            try {
                ObjectName name = new ObjectName(text);
                MBeanServer server = ManagementFactory.getPlatformMBeanServer();
                if (!server.isRegistered(name)) {
                    server.registerMBean(this, name);
                    names.add(name);
                }
            }
            catch (Exception e) {
                LOGGER.warn("mssql-cdc: bean {}", text, e);
            }
        }

        void unregister() {
            for (ObjectName name : names) {
                try {
                    ManagementFactory.getPlatformMBeanServer().unregisterMBean(name);
                }
                catch (Exception e) {
                }
            }
        }

        void update(JsonNode node) {
            for (Iterator<Map.Entry<String, JsonNode>> i = node.fields(); i.hasNext();) {
                Map.Entry<String, JsonNode> one = i.next();
                Object value = one.getValue().isArray() ? JSON.convertValue(one.getValue(), String[].class)
                        : one.getValue().isObject() ? table(one.getValue()) : plain(one.getValue());
                if (value instanceof Long && INTS.contains(one.getKey())) {
                    value = ((Long) value).intValue();
                }
                if (value == null) {
                    values.remove(one.getKey());
                }
                else {
                    values.put(one.getKey(), value);
                }
            }
        }

        private static Object table(JsonNode node) {
            try {
                Map<String, Object> found = new TreeMap<>();
                CompositeType row = new CompositeType("row", "row", new String[]{ "key", "value" }, new String[]{ "key", "value" },
                        new OpenType[]{ SimpleType.STRING, SimpleType.STRING });
                TabularDataSupport table = new TabularDataSupport(new TabularType("map", "map", row, new String[]{ "key" }));
                for (Iterator<Map.Entry<String, JsonNode>> i = node.fields(); i.hasNext();) {
                    Map.Entry<String, JsonNode> one = i.next();
                    table.put(new CompositeDataSupport(row, new String[]{ "key", "value" },
                            new Object[]{ one.getKey(), one.getValue().asText() }));
                }
                return table;
            }
            catch (OpenDataException e) {
                throw new IllegalStateException(e);
            }
        }

        public Object getAttribute(String name) {
            return values.get(name);
        }

        public void setAttribute(Attribute attribute) {
        }

        public AttributeList getAttributes(String[] wanted) {
            AttributeList found = new AttributeList();
            for (String name : wanted) {
                found.add(new Attribute(name, values.get(name)));
            }
            return found;
        }

        public AttributeList setAttributes(AttributeList attributes) {
            return attributes;
        }

        public Object invoke(String name, Object[] params, String[] signature) {
            return null;
        }

        public MBeanInfo getMBeanInfo() {
            MBeanAttributeInfo[] infos = values.entrySet().stream()
                    .map(e -> new MBeanAttributeInfo(e.getKey(), e.getValue().getClass().getName(), "", true, false, false)).toArray(MBeanAttributeInfo[]::new);
            return new MBeanInfo(Bean.class.getName(), "", infos, null, null, null);
        }
    }
}

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;

/**
 * Runs scenes through mssql-jdbc. A request is a line of arguments, each in Base64, blanks between them; the answer is
 * what the scene saw, one fact per line, and a line that starts with a control character: the end, or the failure.
 */
public final class Probe {
    private static final String END = "\u0004";

    public static void main(String[] none) throws Exception {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String[] arguments = Arrays.stream(line.split(" "))
                .map(field -> new String(Base64.getDecoder().decode(field), StandardCharsets.UTF_8))
                .toArray(String[]::new);
            try {
                run(arguments);
                say(END);
            } catch (Exception failure) {
                say(END + failure);
            }
            System.out.flush();
        }
    }

    private static void run(String[] arguments) throws Exception {
        try (Connection connection = DriverManager.getConnection(arguments[1], "sa", arguments[2])) {
            switch (arguments[0]) {
                case "version" -> say(connection.getMetaData().getDatabaseProductVersion());
                case "query" -> query(connection, arguments[3]);
                case "echo" -> echo(connection, arguments[3]);
                case "timeout" -> timeout(connection);
                case "count" -> count(connection, arguments[3]);
                case "transaction" -> transaction(connection, arguments[3]);
                case "error" -> error(connection, arguments[3]);
                default -> throw new IllegalArgumentException(arguments[0]);
            }
        }
    }

    private static void say(Object fact) {
        System.out.println(fact);
    }

    private static void query(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
            ResultSetMetaData columns = rows.getMetaData();
            while (rows.next()) {
                for (int n = 1; n <= columns.getColumnCount(); n++) {
                    say(columns.getColumnTypeName(n) + "=" + show(rows, n));
                }
            }
        }
    }

    private static String show(ResultSet rows, int column) throws SQLException {
        Object value = rows.getObject(column);
        if (value instanceof byte[] bytes) {
            return HexFormat.of().formatHex(bytes);
        }
        return String.valueOf(value);
    }

    /** The same statement five times: sp_executesql, then sp_prepexec, then sp_execute. */
    private static void echo(Connection connection, String sql) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int n = 0; n < 5; n++) {
                statement.setInt(1, n);
                statement.setString(2, "text \u4e2d " + n);
                statement.setBigDecimal(3, new BigDecimal("12.50"));
                statement.setBytes(4, new byte[] {0, 1, (byte) n});
                statement.setTimestamp(5, Timestamp.valueOf("2024-02-29 12:30:15.1234567"));
                statement.setNString(6, "x".repeat(5000));
                statement.setNull(7, java.sql.Types.INTEGER);
                try (ResultSet rows = statement.executeQuery()) {
                    while (rows.next()) {
                        say(rows.getInt(1) + "|" + rows.getString(2) + "|" + rows.getBigDecimal(3) + "|"
                            + HexFormat.of().formatHex(rows.getBytes(4)) + "|" + rows.getTimestamp(5) + "|"
                            + rows.getString(6).length() + "|" + rows.getObject(7));
                    }
                }
            }
        }
    }

    private static void timeout(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            statement.execute("WAITFOR DELAY '00:01:00'");
            say("no timeout");
        } catch (SQLException error) {
            say(error.getSQLState());
        }
        query(connection, "SELECT 1 AS x");
    }

    private static void count(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
            long count = 0;
            while (rows.next()) {
                count++;
            }
            say(count);
        }
    }

    /** Statements separated by '|': run, roll back, run again, commit; the update counts. */
    private static void transaction(Connection connection, String sql) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            for (String text : sql.split("\\|")) {
                switch (text) {
                    case "commit" -> connection.commit();
                    case "rollback" -> connection.rollback();
                    default -> {
                        if (statement.execute(text)) {
                            try (ResultSet rows = statement.getResultSet()) {
                                while (rows.next()) {
                                    say("value " + rows.getObject(1));
                                }
                            }
                        } else {
                            say("count " + statement.getUpdateCount());
                        }
                    }
                }
            }
        }
        connection.setAutoCommit(true);
    }

    private static void error(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
            say("no error");
        } catch (SQLException error) {
            say(error.getErrorCode() + " " + error.getSQLState());
        }
        query(connection, "SELECT 1 AS x");
    }
}

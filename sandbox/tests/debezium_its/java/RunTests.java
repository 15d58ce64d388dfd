import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;

import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestDescriptor;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestSource;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs one class of tests, of JUnit 4 or Jupiter, and prints lines that begin with "@@" among the tests' own output:
 * <pre>
 * @@ planned TEST
 * @@ started TEST
 * @@ passed|failed|skipped TEST [first lines of the failure]
 * </pre>
 * usage: RunTests CLASS PATTERN, where PATTERN is a regular expression for the names of methods.
 */
public final class RunTests implements TestExecutionListener {

    public static void main(String[] args) {
        Pattern pattern = Pattern.compile(args[1]);
        LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
                .selectors(DiscoverySelectors.selectClass(args[0]))
                .filters((org.junit.platform.launcher.PostDiscoveryFilter) test -> FilterResult.includedIf(
                        !test.isTest() || pattern.matcher(name(test)).matches()))
                .build();
        LauncherFactory.create().execute(request, new RunTests());
        System.out.flush();
        Runtime.getRuntime().halt(0); // threads that a failed test left behind must not keep the JVM
    }

    @Override
    public void testPlanExecutionStarted(TestPlan plan) {
        plan.getRoots().stream().flatMap(root -> plan.getDescendants(root).stream()).filter(TestIdentifier::isTest)
                .forEach(test -> say("planned", test, ""));
    }

    @Override
    public void executionStarted(TestIdentifier test) {
        if (test.isTest()) {
            say("started", test, "");
        }
    }

    @Override
    public void executionSkipped(TestIdentifier test, String reason) {
        say("skipped", test, reason);
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        boolean passed = result.getStatus() == TestExecutionResult.Status.SUCCESSFUL;
        if (passed && !test.isTest()) {
            return;
        }
        result.getThrowable().ifPresent(failure -> failure.printStackTrace(System.out));
        String status = passed ? "passed" : result.getStatus() == TestExecutionResult.Status.ABORTED ? "skipped" : "failed";
        say(status, test, result.getThrowable().map(RunTests::cause).orElse(""));
    }

    private static String cause(Throwable failure) {
        Throwable root = failure;
        while (root.getCause() != null && root.getCause() != root) {
            root = root.getCause();
        }
        return root.getClass().getSimpleName() + ": " + root.getMessage();
    }

    private static void say(String what, TestIdentifier test, String details) {
        List<String> lines = Arrays.stream(details.split("\\R")).map(String::strip).filter(line -> !line.isEmpty()).limit(3).toList();
        System.out.println("\n@@ " + what + " " + name(test.getSource().orElse(null), test.getDisplayName()) + " " + String.join(" | ", lines));
    }

    private static String name(TestDescriptor test) {
        return name(test.getSource().orElse(null), test.getDisplayName());
    }

    private static String name(TestSource source, String otherwise) {
        return source instanceof MethodSource method ? method.getMethodName() : otherwise.replace(' ', '_');
    }
}

"""SQL Server's errors: the exception and the one table of message templates.

Every layer of the sandbox raises `SqlError`, normally through `error(number, **values)`. What does not
belong here: deciding when something is an error.
"""

# ruff: noqa: E501 - message texts stand as the server sends them

from __future__ import annotations

from dataclasses import dataclass


class SqlError(Exception):
    """An error as the server reports it: number, text, severity (class), state and where it was raised."""

    def __init__(
        self,
        number: int,
        message: str,
        *,
        severity: int = 16,
        state: int = 1,
        procedure: str = "",
        line: int = 0,
    ) -> None:
        super().__init__(number, message)
        self.number = number
        self.message = message
        self.severity = severity
        self.state = state
        self.procedure = procedure
        self.line = line

    def __str__(self) -> str:
        return f"Msg {self.number}, Level {self.severity}, State {self.state}: {self.message}"


@dataclass(frozen=True, slots=True)
class Template:
    """Message text with named places, and the severity and state it is normally raised with."""

    text: str
    severity: int = 16
    state: int = 1


def error(number: int, *, state: int | None = None, severity: int | None = None, **values: object) -> SqlError:
    """The error `number` with its catalogued text; the places of the text are given by name."""
    template = catalogue[number]
    return SqlError(
        number,
        template.text.format(**values),
        severity=template.severity if severity is None else severity,
        state=template.state if state is None else state,
    )


# fmt: off
T = Template
catalogue: dict[int, Template] = {
    102: T("Incorrect syntax near '{near}'.", 15),
    103: T("The identifier that starts with '{text}' is too long. Maximum length is 32.", 15),  # noqa: E501
    105: T("Unclosed quotation mark after the character string '{text}'.", 15),
    108: T("The ORDER BY position number {position} is out of range of the number of items in the select list.", 15),  # noqa: E501
    109: T("There are more columns in the INSERT statement than values specified in the VALUES clause. The number of values in the VALUES clause must match the number of columns specified in the INSERT statement.", 15),
    110: T("There are fewer columns in the INSERT statement than values specified in the VALUES clause. The number of values in the VALUES clause must match the number of columns specified in the INSERT statement.", 15),
    116: T("Only one expression can be specified in the select list when the subquery is not introduced with EXISTS."),  # noqa: E501
    120: T("The select list for the INSERT statement contains fewer items than the insert list. The number of SELECT values must match the number of INSERT columns.", 15),
    121: T("The select list for the INSERT statement contains more items than the insert list. The number of SELECT values must match the number of INSERT columns.", 15),
    128: T('The name "{name}" is not permitted in this context. Valid expressions are constants, constant expressions, and (in some contexts) variables. Column names are not permitted.', 15),
    130: T("Cannot perform an aggregate function on an expression containing an aggregate or a subquery.", 15),
    132: T("The label '{name}' has already been declared. Label names must be unique within a query batch or stored procedure.", 15),
    134: T("The variable name '{name}' has already been declared. Variable names must be unique within a query batch or stored procedure.", 15),
    135: T("Cannot use a BREAK statement outside the scope of a WHILE statement.", 15),
    136: T("Cannot use a CONTINUE statement outside the scope of a WHILE statement.", 15),
    137: T('Must declare the scalar variable "{name}".', 15),
    139: T("Cannot assign a default value to a local variable.", 15),
    141: T("A SELECT statement that assigns a value to a variable must not be combined with data-retrieval operations.", 15),
    145: T("ORDER BY items must appear in the select list if SELECT DISTINCT is specified.", 15),
    147: T("An aggregate may not appear in the WHERE clause unless it is in a subquery contained in a HAVING clause or a select list, and the column being aggregated is an outer reference.", 15),
    155: T("'{value}' is not a recognized {function} option.", 15),
    156: T("Incorrect syntax near the keyword '{keyword}'.", 15),
    170: T("Line {line}: Incorrect syntax near '{near}'.", 15),
    174: T("The {name} function requires {count} argument(s).", 15),
    189: T("The {name} function requires {low} to {high} arguments.", 15),
    195: T("'{name}' is not a recognized {kind}.", 15, 10),
    201: T("Procedure or function '{name}' expects parameter '{parameter}', which was not supplied.", 16, 4),
    205: T("All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of expressions in their target lists."),
    206: T("Operand type clash: {left} is incompatible with {right}", 16, 2),
    207: T("Invalid column name '{name}'."),
    208: T("Invalid object name '{name}'."),
    209: T("Ambiguous column name '{name}'."),
    213: T("Column name or number of supplied values does not match table definition."),
    214: T("Procedure expects parameter '{name}' of type '{type}'.", 16, 2),
    217: T("Maximum stored procedure, function, trigger, or view nesting level exceeded (limit 32)."),
    220: T("Arithmetic overflow error for data type {type}, value = {value}."),
    222: T("Arithmetic overflow error for data type {type}, value = {value}."),
    226: T("{statement} statement not allowed within multi-statement transaction.", 16, 6),
    229: T("The {permission} permission was denied on the object '{name}', database '{database}', schema '{schema}'.", 14, 5),
    230: T("The {permission} permission was denied on the column '{column}' of the object '{name}', database '{database}', schema '{schema}'.", 14),
    232: T("Arithmetic overflow error for type {type}, value = {value}.", 16, 3),
    235: T("Cannot convert a char value to money. The char value has incorrect syntax."),
    241: T("Conversion failed when converting date and/or time from character string."),
    242: T("The conversion of a {source} data type to a {target} data type resulted in an out-of-range value.", 16, 3),
    243: T("Type {name} is not a defined system type."),
    244: T("The conversion of the {source} value '{value}' overflowed an {target} column. Use a larger integer column."),
    245: T("Conversion failed when converting the {source} value '{value}' to data type {target}."),
    248: T("The conversion of the {source} value '{value}' overflowed an int column."),
    257: T("Implicit conversion from data type {source} to {target} is not allowed. Use the CONVERT function to run this query.", 16, 3),
    260: T("Disallowed implicit conversion from data type {source} to data type {target}, table '{table}', column '{column}'. Use the CONVERT function to run this query."),
    262: T("{permission} permission denied in database '{database}'.", 14),
    264: T("The column name '{name}' is specified more than once in the SET clause or column list of an INSERT. A column cannot be assigned more than one value in the same clause. Modify the clause to make sure that a column is updated only once. If this statement updates or inserts columns into a view, column aliasing can conceal the duplication in your code."),
    266: T("Transaction count after EXECUTE indicates a mismatching number of BEGIN and COMMIT statements. Previous count = {previous}, current count = {current}.", 16, 2),
    271: T('The column "{name}" cannot be modified because it is either a computed column or is the result of a UNION operator.'),
    272: T("Cannot update a timestamp column."),
    273: T("Cannot insert an explicit value into a timestamp column. Use INSERT with a column list to exclude the timestamp column, or insert a DEFAULT into the timestamp column."),
    281: T("{style} is not a valid style number when converting from {source} to a character string."),
    289: T("Cannot construct data type {type}, some of the arguments have values which are not valid."),
    291: T("CAST or CONVERT: invalid attributes specified for type '{type}'"),
    295: T("Conversion failed when converting character string to smalldatetime data type.", 16, 3),
    306: T("The text, ntext, and image data types cannot be compared or sorted, except when using IS NULL or LIKE operator.", 16, 2),
    310: T("The value {value} specified for the MAXRECURSION option exceeds the allowed maximum of 32767.", 15),
    311: T('Cannot use text, ntext, or image columns in the "inserted" and "deleted" tables.'),
    313: T("An insufficient number of arguments were supplied for the procedure or function {name}.", 16, 3),
    319: T("Incorrect syntax near the keyword 'with'. If this statement is a common table expression, an xmlnamespaces clause or a change tracking context clause, the previous statement must be terminated with a semicolon.", 15),
    334: T("The target table '{name}' of the DML statement cannot have any enabled triggers if the statement contains an OUTPUT clause without INTO clause."),
    402: T("The data types {left} and {right} are incompatible in the {operator} operator."),
    403: T("Invalid operator for data type. Operator equals {operator}, type equals {type}."),
    447: T("Expression type {type} is invalid for COLLATE clause.", 16, 0),
    448: T("Invalid collation '{name}'."),
    451: T('Cannot resolve collation conflict between "{left}" and "{right}" in {operator} operator occurring in SELECT statement column {column}.'),
    468: T('Cannot resolve the collation conflict between "{left}" and "{right}" in the {operator} operation.', 16, 9),
    512: T("Subquery returned more than 1 value. This is not permitted when the subquery follows =, !=, <, <= , >, >= or when the subquery is used as an expression."),
    515: T("Cannot insert the value NULL into column '{column}', table '{table}'; column does not allow nulls. {statement} fails.", 16, 2),
    517: T("Adding a value to a '{type}' column caused an overflow."),
    518: T("Cannot convert data type {source} to {target}."),
    529: T("Explicit conversion from data type {source} to {target} is not allowed.", 16, 1),
    530: T("The statement terminated. The maximum recursion {count} has been exhausted before statement completion."),
    535: T("The {function} function resulted in an overflow. The number of dateparts separating two date/time instances is too large. Try to use {function} with a less precise datepart."),
    536: T("Invalid length parameter passed to the {function} function.", 16, 4),
    537: T("Invalid length parameter passed to the LEFT or SUBSTRING function.", 16, 3),
    544: T("Cannot insert explicit value for identity column in table '{table}' when IDENTITY_INSERT is set to OFF."),
    545: T("Explicit value must be specified for identity column in table '{table}' either when IDENTITY_INSERT is set to ON or when a replication user is inserting into a NOT FOR REPLICATION identity column."),
    547: T('The {statement} statement conflicted with the {kind} constraint "{constraint}". The conflict occurred in database "{database}", table "{table}"{column}.', 16, 0),
    557: T("Only functions and some extended stored procedures can be executed from within a function.", 16, 2),
    574: T("{statement} statement cannot be used inside a user transaction.", 16, 0),
    628: T("Cannot issue SAVE TRANSACTION when there is no active transaction.", 16, 0),
    701: T("There is insufficient system memory in resource pool '{pool}' to run this query.", 17, 123),
    911: T("Database '{name}' does not exist. Make sure that the name is entered correctly."),
    916: T('The server principal "{login}" is not able to access the database "{database}" under the current security context.', 14),
    1001: T("Line {line}: Length or precision specification {value} is invalid.", 15),
    1002: T("Line {line}: Specified scale {scale} is invalid.", 15),
    1007: T("The number '{value}' is out of the range for numeric representation (maximum precision 38).", 15),
    1031: T("Percent values must be between 0 and 100.", 15),  # noqa: E501
    1060: T("The number of rows provided for a TOP or FETCH clauses row count parameter must be an integer.", 15),  # noqa: E501
    1062: T("The TOP N WITH TIES clause is not allowed without a corresponding ORDER BY clause.", 15),  # noqa: E501
    1088: T('Cannot find the object "{name}" because it does not exist or you do not have permissions.', 16, 12),
    1205: T("Transaction (Process ID {spid}) was deadlocked on {resource} resources with another process and has been chosen as the deadlock victim. Rerun the transaction.", 13, 51),
    1222: T("Lock request time out period exceeded.", 16, 51),
    1223: T("Cannot release the application lock because it is not currently held."),  # noqa: E501
    1505: T("The CREATE UNIQUE INDEX statement terminated because a duplicate key was found for the object name '{table}' and the index name '{index}'. The duplicate key value is {values}."),
    1750: T("Could not create constraint or index. See previous errors.", 16, 0),
    1752: T("Column '{column}' in table '{table}' is invalid for creating a default constraint."),
    1753: T("Column '{column}' is not the same length or scale as referencing column '{other}' in foreign key '{name}'. Columns participating in a foreign key relationship must be defined with the same length and scale."),
    1767: T("Foreign key '{name}' references invalid table '{table}'.", 16, 0),
    1769: T("Foreign key '{name}' references invalid column '{column}' in referencing table '{table}'."),
    1770: T("Foreign key '{name}' references invalid column '{column}' in referenced table '{table}'.", 16, 0),
    1773: T("Foreign key '{name}' has implicit reference to object '{table}' which does not have a primary key defined on it.", 16, 0),
    1776: T("There are no primary or candidate keys in the referenced table '{table}' that match the referencing column list in the foreign key '{name}'.", 16, 0),
    1779: T("Table '{table}' already has a primary key defined on it.", 16, 0),
    1785: T("Introducing FOREIGN KEY constraint '{name}' on table '{table}' may cause cycles or multiple cascade paths. Specify ON DELETE NO ACTION or ON UPDATE NO ACTION, or modify other FOREIGN KEY constraints.", 16, 0),
    1801: T("Database '{name}' already exists. Choose a different database name.", 16, 3),
    1902: T("Cannot create more than one clustered index on table '{table}'. Drop the existing clustered index '{index}' before creating another.", 16, 3),
    1911: T("Column name '{column}' does not exist in the target table or view."),
    1913: T("The operation failed because an index or statistics with name '{index}' already exists on table '{table}'."),
    1919: T("Column '{column}' in table '{table}' is of a type that is invalid for use as a key column in an index."),
    2010: T("Cannot perform alter on '{name}' because it is an incompatible object type."),
    2601: T("Cannot insert duplicate key row in object '{table}' with unique index '{index}'. The duplicate key value is {values}.", 14),
    2627: T("Violation of {kind} constraint '{constraint}'. Cannot insert duplicate key in object '{table}'. The duplicate key value is {values}.", 14),
    2628: T("String or binary data would be truncated in table '{table}', column '{column}'. Truncated value: '{value}'."),
    2705: T("Column names in each table must be unique. Column name '{column}' in table '{table}' is specified more than once.", 16, 3),
    2714: T("There is already an object named '{name}' in the database.", 16, 6),
    2715: T("Column, parameter, or variable #{ordinal}: Cannot find data type {name}.", 16, 6),
    2716: T("Column, parameter, or variable #{ordinal}: Cannot specify a column width on data type {type}."),
    2717: T("The size ({size}) given to the {kind} '{name}' exceeds the maximum allowed ({maximum}).", 15, 2),
    2724: T('Parameter or variable "{name}" has an invalid data type.', 15),
    2725: T("Online index operation cannot be performed on '{name}'."),
    2727: T("Cannot find index '{name}'.", 11),
    2732: T("Error number {number} is invalid. The number must be from 13000 through 2147483647 and it cannot be 50000."),
    2738: T("A table can only have one timestamp column. Because table '{table}' already has one, the column '{column}' cannot be added.", 16, 2),
    2739: T("The text, ntext, and image data types are invalid for local variables."),
    2744: T("Multiple identity columns specified for table '{table}'. Only one identity column per table is allowed.", 16, 2),
    2748: T("Cannot specify {type} data type (parameter {ordinal}) as a substitution parameter."),
    2749: T("Identity column '{column}' must be of data type int, bigint, smallint, tinyint, or decimal or numeric with a scale of 0, unencrypted, and constrained to be nonnullable.", 16, 2),
    2750: T("Column or parameter #{ordinal}: Specified column precision {precision} is greater than the maximum precision of 38."),
    2751: T("Column or parameter #{ordinal}: Specified column scale {scale} is greater than the specified precision of {precision}."),
    2754: T("Error severity levels greater than 18 can only be specified by members of the sysadmin role, using the WITH LOG option."),
    2759: T("CREATE SCHEMA failed due to previous errors.", 16, 0),
    2760: T('The specified schema name "{name}" either does not exist or you do not have permission to use it.'),
    2766: T("The definition for user-defined data type '{name}' has changed."),
    2787: T("Invalid format specification: '{text}'."),
    2809: T("The request for procedure '{name}' failed because '{name}' is a {kind} object.", 18),
    2812: T("Could not find stored procedure '{name}'.", 16, 62),
    3609: T("The transaction ended in the trigger. The batch has been aborted."),
    3616: T("An error was raised during trigger execution. The batch has been aborted and the user transaction, if any, has been rolled back."),
    3621: T("The statement has been terminated.", 0, 0),
    3623: T("An invalid floating point operation occurred."),
    3701: T("Cannot drop the {kind} '{name}', because it does not exist or you do not have permission.", 11, 5),
    3702: T('Cannot drop database "{name}" because it is currently in use.', 16, 3),
    3705: T("Cannot use DROP {given} with '{name}' because '{name}' is a {actual}. Use {right}."),
    3708: T("Cannot drop the {kind} '{name}' because it is a system {kind}.", 16, 2),
    3723: T("An explicit DROP INDEX is not allowed on index '{name}'. It is being used for {constraint} constraint enforcement.", 16, 4),
    3724: T("Cannot {action} the {kind} '{name}' because it is being used for replication.", 16, 3),
    3725: T("The constraint '{name}' is being referenced by table '{table}', foreign key constraint '{key}'.", 16, 0),
    3726: T("Could not drop object '{name}' because it is referenced by a FOREIGN KEY constraint."),
    3727: T("Could not drop constraint. See previous errors.", 16, 0),
    3728: T("'{name}' is not a constraint."),
    3729: T("Cannot drop {kind} '{name}' because it is being referenced by object '{object}'."),
    3902: T("The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION."),
    3903: T("The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION."),
    3910: T("Transaction context in use by another session.", 16, 2),
    3915: T("Cannot use the ROLLBACK statement within an INSERT-EXEC statement.", 16, 0),
    3916: T("Cannot use the COMMIT statement within an INSERT-EXEC statement unless BEGIN TRANSACTION is used first.", 16, 0),
    3930: T("The current transaction cannot be committed and cannot support operations that write to the log file. Roll back the transaction."),
    3931: T("The current transaction cannot be committed and cannot be rolled back to a savepoint. Roll back the entire transaction."),
    3951: T("Transaction failed in database '{database}' because the statement was run under snapshot isolation but the transaction did not start in snapshot isolation. You cannot change the isolation level of the transaction to snapshot after the transaction has started unless the transaction was originally started under snapshot isolation level."),
    3952: T("Snapshot isolation transaction failed accessing database '{database}' because snapshot isolation is not allowed in this database. Use ALTER DATABASE to allow snapshot isolation."),
    3960: T("Snapshot isolation transaction aborted due to update conflict. You cannot use snapshot isolation to access table '{table}' directly or indirectly in database '{database}' to update, delete, or insert the row that has been modified or deleted by another transaction. Retry the transaction or change the isolation level for the update/delete statement.", 16, 2),
    3961: T("Snapshot isolation transaction failed in database '{database}' because the object accessed by the statement has been modified by a DDL statement in another concurrent transaction since the start of this transaction.  It is disallowed because the metadata is not versioned. A concurrent update to metadata can lead to inconsistency if mixed with snapshot isolation."),
    3981: T("The transaction operation cannot be performed because there are pending requests working on this transaction."),
    3998: T("Uncommittable transaction is detected at the end of the batch. The transaction is rolled back."),
    4002: T("The incoming tabular data stream (TDS) protocol stream is incorrect. The stream ended unexpectedly.", 16, 2),
    4060: T('Cannot open database "{name}" requested by the login. The login failed.', 11),
    4104: T('The multi-part identifier "{name}" could not be bound.'),
    4112: T("The function '{name}' must have an OVER clause with ORDER BY.", 15),  # noqa: E501
    4121: T('Cannot find either column "{column}" or the user-defined function or aggregate "{name}", or the name is ambiguous.'),
    4145: T("An expression of non-boolean type specified in a context where a condition is expected, near '{near}'.", 15),  # noqa: E501
    4701: T('Cannot find the object "{name}" because it does not exist or you do not have permissions.'),
    4711: T("Cannot truncate table '{name}' because it is published for replication or enabled for Change Data Capture."),
    4712: T("Cannot truncate table '{name}' because it is being referenced by a FOREIGN KEY constraint."),
    4901: T("ALTER TABLE only allows columns to be added that can contain nulls, or have a DEFAULT definition specified, or the column being added is an identity or timestamp column, or alternatively if none of the previous conditions are satisfied the table must be empty to allow addition of this column. Column '{column}' cannot be added to non-empty table '{table}' because it does not satisfy these conditions."),
    4902: T('Cannot find the object "{name}" because it does not exist or you do not have permissions.'),
    4922: T("{statement} failed because one or more objects access this column.", 16, 9),
    4923: T("ALTER TABLE DROP COLUMN failed because '{column}' is the only data column in table '{table}'. A table must have at least one data column."),
    4924: T("{statement} failed because column '{column}' does not exist in table '{table}'."),
    4928: T("Cannot alter column '{column}' because it is '{reason}'."),
    5074: T("The {kind} '{name}' is dependent on column '{column}'."),
    6401: T("Cannot roll back {name}. No transaction or savepoint of that name was found."),
    7139: T("Length of LOB data ({length}) to be replicated exceeds configured maximum {maximum}. Use the stored procedure sp_configure to increase the configured maximum value for max text repl size option, which defaults to 65536. A configured value of -1 indicates no limit, other that the limit imposed by the data type."),
    7202: T("Could not find server '{name}' in sys.servers. Verify that the correct server name was specified. If necessary, execute the stored procedure sp_addlinkedserver to add the server to sys.servers.", 11, 2),
    7601: T("Cannot use a CONTAINS or FREETEXT predicate on table or indexed view '{name}' because it is not full-text indexed."),
    8101: T("An explicit value for the identity column in table '{table}' can only be specified when a column list is used and IDENTITY_INSERT is ON."),
    8102: T("Cannot update identity column '{column}'."),
    8106: T("Table '{table}' does not have the identity property. Cannot perform SET operation."),
    8107: T("IDENTITY_INSERT is already ON for table '{table}'. Cannot perform SET operation for table '{other}'."),
    8111: T("Cannot define PRIMARY KEY constraint on nullable column in table '{table}'."),
    8114: T("Error converting data type {source} to {target}.", 16, 5),
    8115: T("Arithmetic overflow error converting {source} to data type {target}.", 16, 2),
    8116: T("Argument data type {type} is invalid for argument {position} of {function} function."),
    8117: T("Operand data type {type} is invalid for {operator} operator."),
    8120: T("Column '{column}' is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause."),
    8121: T("Column '{column}' is invalid in the HAVING clause because it is not contained in either an aggregate function or the GROUP BY clause."),
    8127: T('Column "{column}" is invalid in the ORDER BY clause because it is not contained in either an aggregate function or the GROUP BY clause.'),
    8133: T("At least one of the result expressions in a CASE specification must be an expression other than the NULL constant."),
    8134: T("Divide by zero error encountered."),
    8143: T("Parameter '{name}' was supplied multiple times."),
    8144: T("Procedure or function {name} has too many arguments specified.", 16, 2),
    8145: T("{parameter} is not a parameter for procedure {name}.", 16, 2),
    8146: T("Procedure {name} has no parameters and arguments were supplied.", 16, 2),
    8152: T("String or binary data would be truncated.", 16, 13),
    8153: T("Warning: Null value is eliminated by an aggregate or other SET operation.", 0, 1),
    8154: T("The table '{name}' is ambiguous.", 15),  # noqa: E501
    8155: T("No column name was specified for column {ordinal} of '{name}'.", 16, 2),
    8156: T("The column '{column}' was specified multiple times for '{name}'."),
    8158: T("'{name}' has more columns than were specified in the column list."),
    8159: T("'{name}' has fewer columns than were specified in the column list."),
    8162: T('The formal parameter "{parameter}" was not declared as an OUTPUT parameter, but the actual parameter passed in requested output.', 16, 2),
    8169: T("Conversion failed when converting from a character string to uniqueidentifier.", 16, 2),
    8170: T("Insufficient result space to convert uniqueidentifier value to char.", 16, 2),
    8178: T("The parameterized query '{query}' expects the parameter '{parameter}', which was not supplied."),
    8179: T("Could not find prepared statement with handle {handle}.", 16, 2),
    8180: T("Statement(s) could not be prepared."),
    8672: T("The MERGE statement attempted to UPDATE or DELETE the same row more than once. This happens when a target row matches more than one source row. A MERGE statement cannot UPDATE/DELETE the same row of the target table multiple times. Refine the ON clause to ensure a target row matches at most one source row, or use the GROUP BY clause to group the source rows."),
    9436: T("XML parsing: line {line}, character {position}, end tag does not match start tag"),
    9807: T("The input character string does not follow style {style}, either change the input character string or use a different style.", 16, 0),
    9810: T("The datepart {part} is not supported by date function {function} for data type {type}.", 16, 0),
    9819: T("Conversion failed when converting the nvarchar value '{value}' to data type {target} using culture '{culture}'."),
    9820: T("The time zone parameter '{value}' provided to AT TIME ZONE clause is invalid."),
    9812: T("The timezone provided to builtin function {function} is invalid.", 16, 0),
    9829: T("STRING_AGG aggregation result exceeded the limit of 8000 bytes. Use LOB types to avoid result truncation."),
    10704: T("To rethrow an error, a THROW statement must be used inside a CATCH block. Insert the THROW statement inside a CATCH block, or add error parameters to the THROW statement.", 15),  # noqa: E501
    10742: T("The offset specified in a OFFSET clause may not be negative.", 15),  # noqa: E501
    10744: T("The number of rows provided for a FETCH clause must be greater then zero.", 15),  # noqa: E501
    11011: T("Line {line}: Incorrect syntax near '{near}'.", 15),
    11700: T("The increment for sequence object '{name}' cannot be zero."),
    11717: T("NEXT VALUE FOR function does not support the OVER clause in default constraints, UPDATE statements, or MERGE statements."),
    11728: T("The sequence object '{name}' has reached its minimum or maximum value. Restart the sequence object to allow new values to be generated."),
    13608: T("Property cannot be found on the specified JSON path.", 16, 2),
    13609: T("JSON text is not properly formatted. Unexpected character '{character}' is found at position {position}.", 16, 4),
    13607: T("JSON path is not properly formatted. Unexpected character '{character}' is found at position {position}.", 16, 3),
    13623: T("Scalar value cannot be found in the specified JSON path."),
    13624: T("Object or array cannot be found in the specified JSON path."),
    15007: T("'{name}' is not a valid login or you do not have permission."),
    15023: T("User, group, or role '{name}' already exists in the current database."),
    15025: T("The server principal '{name}' already exists."),
    15151: T("Cannot {action} the {kind} '{name}', because it does not exist or you do not have permission."),
    15225: T("No item by the name of '{name}' could be found in the current database '{database}', given that @itemtype was input as '{kind}'.", 11),
    15248: T("Either the parameter @objname is ambiguous or the claimed @objtype ({kind}) is wrong.", 11),
    15335: T("Error: The new name '{name}' is already in use as a {kind} name and would cause a duplicate that is not permitted.", 11),
    18456: T("Login failed for user '{login}'.", 14),
    9828: T("The second and third arguments of the TRANSLATE built-in function must contain an equal number of characters."),
}

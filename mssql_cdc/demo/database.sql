-- The demo's sample database: a web shop in eight tables with every common type, about 200,000 rows, and a signal table.
CREATE DATABASE shop;
GO
ALTER DATABASE shop SET ALLOW_SNAPSHOT_ISOLATION ON;
GO
USE shop;
GO
EXEC sys.sp_cdc_enable_db;
GO
CREATE SCHEMA sales;
GO
CREATE TABLE dbo.customers (
    id int IDENTITY(1, 1) NOT NULL CONSTRAINT pk_customers PRIMARY KEY,
    name nvarchar(100) NOT NULL,
    email varchar(200) NULL,
    country char(2) NOT NULL DEFAULT ('DE'),
    credit_limit money NULL,
    is_active bit NOT NULL DEFAULT (1),
    public_id uniqueidentifier NOT NULL,
    created_at datetime2(7) NOT NULL,
    version rowversion NOT NULL
);
CREATE TABLE dbo.products (
    sku varchar(20) NOT NULL CONSTRAINT pk_products PRIMARY KEY,
    title nvarchar(200) NOT NULL,
    price decimal(12, 2) NOT NULL,
    weight float NULL,
    rating real NULL,
    stock smallint NOT NULL,
    tags xml NULL,
    thumbnail varbinary(64) NULL,
    launched date NULL
);
CREATE TABLE sales.orders (
    id bigint NOT NULL CONSTRAINT pk_orders PRIMARY KEY,
    customer_id int NOT NULL,
    status tinyint NOT NULL,
    ordered_at datetimeoffset(7) NOT NULL,
    delivery_window time(3) NULL,
    note nvarchar(400) NULL
);
CREATE TABLE sales.order_lines (
    order_id bigint NOT NULL,
    line_no smallint NOT NULL,
    sku varchar(20) NOT NULL,
    quantity int NOT NULL,
    unit_price decimal(12, 2) NOT NULL,
    CONSTRAINT pk_order_lines PRIMARY KEY (order_id, line_no)
);
CREATE TABLE sales.payments (
    id uniqueidentifier NOT NULL CONSTRAINT pk_payments PRIMARY KEY,
    order_id bigint NOT NULL,
    amount decimal(38, 10) NOT NULL,
    fee smallmoney NULL,
    paid_at datetime NULL,
    booked_on smalldatetime NULL,
    reference nchar(12) NULL
);
CREATE TABLE dbo.documents (
    id int NOT NULL CONSTRAINT pk_documents PRIMARY KEY,
    title nvarchar(200) NOT NULL,
    body nvarchar(max) NULL,
    attachment varbinary(max) NULL,
    remarks text NULL
);
CREATE TABLE dbo.measurements (
    device_id int NOT NULL,
    taken_at datetime2(3) NOT NULL,
    temperature decimal(5, 2) NULL,
    pressure numeric(9, 3) NULL,
    flags binary(4) NULL,
    local_time time(7) NULL,
    CONSTRAINT pk_measurements PRIMARY KEY (device_id, taken_at)
);
CREATE TABLE dbo.audit_log (
    logged_at datetime2(0) NOT NULL,
    actor nvarchar(50) NOT NULL,
    message varchar(500) NULL
);
CREATE TABLE dbo.debezium_signal (
    id varchar(64) NOT NULL CONSTRAINT pk_debezium_signal PRIMARY KEY,
    type varchar(32) NOT NULL,
    data varchar(2048) NULL
);
CREATE TABLE dbo.numbers (i int NOT NULL PRIMARY KEY);
GO
INSERT INTO dbo.numbers
SELECT a.v + 10 * b.v + 100 * c.v + 1000 * d.v + 10000 * e.v + 1
FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS a(v)
CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS b(v)
CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS c(v)
CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS d(v)
CROSS JOIN (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8)) AS e(v);
GO
INSERT INTO dbo.customers (name, email, country, credit_limit, is_active, public_id, created_at)
SELECT CONCAT(N'Customer ', i, N' – Zoë'), CASE WHEN i % 7 = 0 THEN NULL ELSE CONCAT('c', i, '@example.org') END,
       CASE i % 3 WHEN 0 THEN 'DE' WHEN 1 THEN 'FR' ELSE 'US' END, i * 1.2345, i % 2, NEWID(),
       DATEADD(second, i, CAST('2026-01-01 08:00:00.1234567' AS datetime2(7)))
FROM dbo.numbers WHERE i <= 20000;
INSERT INTO dbo.products (sku, title, price, weight, rating, stock, tags, thumbnail, launched)
SELECT CONCAT('SKU-', i), CONCAT(N'Product ', i), i * 0.99, i / 3.0, i / 7.0, i % 1000,
       CASE WHEN i % 5 = 0 THEN NULL ELSE CONCAT(N'<tags><t>', i % 10, N'</t></tags>') END,
       CAST(i AS varbinary(64)), DATEADD(day, i % 3000, CAST('2019-01-01' AS date))
FROM dbo.numbers WHERE i <= 2000;
INSERT INTO sales.orders (id, customer_id, status, ordered_at, delivery_window, note)
SELECT i, i % 20000 + 1, i % 5, TODATETIMEOFFSET(DATEADD(minute, i, CAST('2026-02-01' AS datetime2(7))), 60 * (i % 5 - 2)),
       CASE WHEN i % 4 = 0 THEN NULL ELSE CAST('13:37:42.123' AS time(3)) END,
       CASE WHEN i % 10 = 0 THEN N'Bitte klingeln ☂' ELSE NULL END
FROM dbo.numbers WHERE i <= 60000;
INSERT INTO sales.order_lines (order_id, line_no, sku, quantity, unit_price)
SELECT (i + 1) / 2, i % 2 + 1, CONCAT('SKU-', i % 2000 + 1), i % 9 + 1, (i % 2000 + 1) * 0.99
FROM dbo.numbers WHERE i <= 90000;
INSERT INTO sales.payments (id, order_id, amount, fee, paid_at, booked_on, reference)
SELECT NEWID(), i, CAST(i AS decimal(38, 10)) / 7, i % 100 * 0.01, DATEADD(second, i, CAST('2026-03-01' AS datetime)),
       DATEADD(minute, i, CAST('2026-03-02' AS smalldatetime)), CONCAT(N'REF', i)
FROM dbo.numbers WHERE i <= 20000;
INSERT INTO dbo.documents (id, title, body, attachment, remarks)
SELECT i, CONCAT(N'Document ', i), REPLICATE(CAST(N'Lorem ipsum dolor sit amet. ' AS nvarchar(max)), i % 50 + 1),
       CAST(REPLICATE('x', i % 100) AS varbinary(max)), CONCAT('remark ', i)
FROM dbo.numbers WHERE i <= 1000;
INSERT INTO dbo.measurements (device_id, taken_at, temperature, pressure, flags, local_time)
SELECT i % 50, DATEADD(second, i, CAST('2026-05-01' AS datetime2(3))), i % 400 * 0.1, 1013.25 + i % 30, CAST(i AS binary(4)),
       CAST('23:59:59.9999999' AS time(7))
FROM dbo.numbers WHERE i <= 5000;
INSERT INTO dbo.audit_log (logged_at, actor, message)
SELECT DATEADD(second, i, CAST('2026-06-01' AS datetime2(0))), N'importer', CONCAT('row ', i) FROM dbo.numbers WHERE i <= 2000;
DROP TABLE dbo.numbers;
GO
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'customers', @role_name = NULL;
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'products', @role_name = NULL;
EXEC sys.sp_cdc_enable_table @source_schema = N'sales', @source_name = N'orders', @role_name = NULL;
EXEC sys.sp_cdc_enable_table @source_schema = N'sales', @source_name = N'order_lines', @role_name = NULL;
EXEC sys.sp_cdc_enable_table @source_schema = N'sales', @source_name = N'payments', @role_name = NULL;
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'documents', @role_name = NULL;
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'measurements', @role_name = NULL;
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'audit_log', @role_name = NULL;
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'debezium_signal', @role_name = NULL;
GO

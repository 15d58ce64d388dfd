"""What SQLAlchemy's compliance suite may ask of SQL Server, where that differs from what it asks of any database.

The names are the suite's; that SQL Server has or lacks them is what SQLAlchemy itself says of it. The suite's plugin
reads the class, see test_sqlalchemy_suite.py.
"""

from __future__ import annotations

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

HAS = (
    "aggregate_order_by", "autocommit", "cast_precision_numerics_many_significant_digits", "comment_reflection",
    "comment_reflection_full_unicode", "computed_columns", "computed_columns_reflect_persisted",
    "computed_columns_stored", "computed_columns_virtual", "create_or_replace_view", "create_table_as",
    "create_temp_table_as", "cross_schema_fk_reflection", "ctes", "ctes_with_update_delete", "datetime_literals",
    "dbapi_lastrowid", "emulated_lastrowid", "except_", "expression_server_defaults", "fetch_expression",
    "fetch_first", "fetch_percent", "fetch_ties", "fk_constraint_option_reflection_ondelete_noaction",
    "float_or_double_precision_behaves_generically", "foreign_key_constraint_name_reflection",
    "foreign_key_constraint_option_reflection_ondelete", "foreign_key_constraint_option_reflection_onupdate",
    "has_temp_table", "identity_columns", "index_reflects_included_columns", "indexes_check_column_order",
    "intersect", "json_array_indexes", "json_type", "mod_operator_as_percent_sign",
    "nvarchar_types", "order_by_collation", "percent_schema_names", "precision_numerics_enotation_small",
    "precision_numerics_many_significant_digits", "precision_numerics_retains_significant_digits",
    "reflects_pk_names", "savepoints", "schema_create_delete", "server_defaults", "skip_autocommit_rollback",
    "supports_bitwise_and", "supports_bitwise_not", "supports_bitwise_or", "supports_bitwise_shift",
    "supports_bitwise_xor", "table_value_constructor", "unicode_ddl", "unique_constraints_reflect_as_index",
    "update_from", "view_column_reflection", "view_reflection", "views", "window_functions",
)  # fmt: skip
LACKS = (
    "binary_comparisons", "binary_literals", "date_coerces_from_datetime", "datetime_microseconds",
    "fetch_null_from_numeric", "nested_aggregates", "order_by_col_from_union",
    "parens_in_union_contained_select_w_limit_offset", "recursive_fk_cascade", "temp_table_reflect_indexes",
    "time_microseconds", "unicode_data_no_special_types", "unique_constraint_reflection",
)  # fmt: skip

Requirements = type(
    "Requirements",
    (SuiteRequirements,),
    {
        **{name: property(lambda _self: exclusions.open()) for name in HAS},
        **{name: property(lambda _self: exclusions.closed()) for name in LACKS},
        "get_order_by_collation": lambda _self, _config: "Latin1_General_CI_AS",
    },
)

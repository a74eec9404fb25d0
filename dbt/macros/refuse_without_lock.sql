{# Refuses a dbt that writes beside a run: inlet (target `inlet`) holds the lakehouse itself, a plain dbt does by
   Inlet's plugin, dbt_inlet. -#}
{% macro refuse_without_lock() %}
{%- if execute and target.name != 'inlet' and not env_var('INLET_WRITES', '')
      and invocation_args_dict.which in ('build', 'run', 'seed', 'snapshot', 'retry', 'clone') -%}
  {{ exceptions.raise_compiler_error(
    "This dbt does not hold the lakehouse, so a run of Inlet could write beside it: install the package inlet "
    ~ "beside dbt, or start dbt from the environment that has it.") }}
{%- endif -%}
{% endmacro %}

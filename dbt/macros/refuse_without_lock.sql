{# Refuses a dbt that writes beside a run: inlet (target `inlet`) holds the lakehouse itself, a plain dbt does by
   Inlet's plugin, dbt_inlet. A SQL warehouse builds marts alone, which no run writes. -#}
{% macro refuse_without_lock() %}
{%- if execute and target.name != 'inlet' and not env_var('INLET_WRITES', '')
      and invocation_args_dict.which in ('build', 'run', 'seed', 'snapshot', 'retry', 'clone') -%}
  {%- set ours = [] -%}
  {%- if target.type == 'databricks' -%}
    {%- for id in selected_resources if graph.nodes.get(id, {}).get('fqn', [])[1:2] == ['gold'] -%}
      {%- do ours.append(id) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- if ours -%}
    {{ exceptions.raise_compiler_error(
      "A SQL warehouse builds no gold: `inlet run` does. Select your own models: dbt build --select marts") }}
  {%- elif target.type != 'databricks' -%}
    {{ exceptions.raise_compiler_error(
      "This dbt does not hold the lakehouse, so a run of Inlet could write at the same time: install the package "
      ~ "inlet next to dbt, or start dbt from the environment that has it.") }}
  {%- endif -%}
{%- endif -%}
{% endmacro %}

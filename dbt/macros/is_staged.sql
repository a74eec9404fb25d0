{# Does `<t>__folded` hold a batch that is not committed? The batch itself where this run has staged it. -#}
{% macro is_staged(name) -%}
  {%- set state = gold_state() -%}
  {%- if name not in state.staged -%}
    {%- set staged, our = [], ours(contract(name)) -%}
    {%- if name ~ '__folded' in gold_tables(name) -%}
      {%- for row in query_rows('select ' ~ our.source ~ ' as source, ' ~ our._through_batch_id ~ ' as batch_id from '
                                ~ target.schema ~ '.' ~ name
                         ~ '__folded where ' ~ our._through_batch_id ~ ' is not null') -%}
        {%- if row.batch_id > state.applied.get((name, row.source), {'batch_id': -1}).batch_id -%}
          {%- do staged.append(row.source) -%}
        {%- endif -%}
      {%- endfor -%}
    {%- endif -%}
    {%- do state.staged.update({name: staged | length > 0}) -%}
  {%- endif -%}
  {{ return(state.staged[name]) }}
{%- endmacro %}

{# Where a table stands, one row per source that is behind the ledger: {source, applied_batch_id, applied_change_seq,
   through_batch_id}. #}
{% macro progress(name) -%}
  {%- set state, table = gold_state(), contract(name).table -%}
  {%- set behind = [] -%}
  {%- for (of_table, source), through_batch_id in state.whole.items() if of_table == table -%}
    {%- set applied = state.applied.get((name, source), {'batch_id': -1, 'change_seq': none}) -%}
    {%- if through_batch_id > applied.batch_id -%}
      {%- do behind.append({'source': source, 'applied_batch_id': applied.batch_id, 'applied_change_seq': applied.change_seq,
                            'through_batch_id': through_batch_id}) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(behind | sort(attribute='source')) }}
{%- endmacro %}

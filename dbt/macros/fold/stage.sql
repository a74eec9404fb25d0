{# Fold a batch into `<t>__folded`: closed and open versions, and how far they come. From here on the batch is fixed:
   what follows only copies, so a run that dies is finished by the next one. -#}
{% macro stage(name, batch) -%}
  {%- if name ~ '__folded' not in gold_tables(name) %}{% do create_staging(name, 'folded') %}{% endif -%}
  {%- set small, our = gold_state().small.get(name), ours(contract(name)) -%}
  {%- set is_read = small and not small.is_whole and not batch.has_rewind and not batch.has_wipe
                    and adapter.small_batches.new_changes(name) is not none -%}
  {%- set has_json = batch.has_added or contract(name).get('added_again') -%}
  {%- do batch.update({'is_small': is_whole(name, batch.has_rewind) or is_read,
                       'is_local': is_local(name, batch.has_rewind, batch.sources) and not has_json
                                   and is_light(name, batch)}) -%}
  {%- do small_query_settings(is_read) -%}
  {%- if is_read -%}
    {%- do batch.update({'touched_rows': adapter.small_batches.touched_rows(name, our.source, contract(name).key,
                                                                            batch.sources)}) -%}
  {%- endif -%}
  {%- do fold_into(name, batch, 'folded') -%}
  {%- do gold_state().staged.update({name: batch}) -%}
{%- endmacro %}


{# True if a fold fits in memory without Spark: DataFusion holds a kilobyte a value, and where values are carried on
   from the version before, ten or more for each row and column that it carries. -#}
{% macro is_light(name, batch) -%}
  {%- set stored = gold_state().small.get(name, {}).get('num_rows', 0) if batch.has_rewind or batch.has_wipe else 0 -%}
  {%- set num_rows = batch.num_changes + stored -%}
  {%- set num_values = num_rows * contract(name).columns | length -%}
  {{ return(num_rows <= 5000 and num_values <= 100000 if batch.has_partial else num_values <= 1000000) }}
{%- endmacro %}


{# A batch of plain changes is one query; where a step is read several times, it is kept, as each step is without Spark.
   In: the table's last word, as in `folded`. -#}
{% macro fold_into(name, batch, table) -%}
  {%- set kept = [] -%}
  {%- set entries_query = entries(name, batch) -%}
  {%- if batch.is_local -%}
    {%- set entries_query = 'select * from ' ~ keep(name, true, 'entries', entries_query) -%}
  {%- endif -%}
  {%- set touched_query = touched(name, batch, entries_query) -%}
  {%- if batch.has_rewind or batch.has_wipe or batch.is_local -%}
    {%- do kept.append(keep(name, batch.is_local, 'touched', touched_query)) -%}
    {%- set touched_query = 'select * from ' ~ kept[-1] -%}
  {%- endif -%}
  {%- set timeline_query, threads_query = timeline(name, batch, entries_query, touched_query), none -%}
  {%- if batch.has_key_change or batch.is_local -%}
    {%- do kept.append(keep(name, batch.is_local, 'timeline', timeline_query)) -%}
    {%- set timeline_query = 'select * from ' ~ kept[-1] -%}
  {%- endif -%}
  {%- if batch.has_key_change -%}
    {%- set threads_query = threads(name, batch.is_local, kept, batch.has_partial) -%}
  {%- endif -%}
  {%- set staged = target.schema ~ '.' ~ name ~ '__' ~ table -%}
  {%- set query = fold(name, batch, timeline_query, threads_query) -%}
  {%- if batch.is_small -%}
    {%- do adapter.small_batches.stage(name, query, batch.is_local) -%}
  {%- else -%}
    {% call statement('stage') %}insert overwrite table {{ staged }} {{ query }}{% endcall %}
  {%- endif -%}
  {%- for table in [batch.progress] + kept if table and not (batch.is_local and table in kept) -%}
    {%- do run_query('drop table ' ~ table) -%}
  {%- endfor -%}
{%- endmacro %}

"""What a person does about each kind of reject, in one line: `inlet rejects` prints it, docs/rejects.md lists it."""

REPLAY = "then `inlet replay`"
RESEND = (
    "ask for the record again (a good copy resolves a reject with a change_seq), or "
    "`inlet rejects --unit UNIT --at BYTE --close --reason TEXT`"
)
NEXT_STEPS = {
    "unknown_table": "write its contract (`inlet import`), map its name in `tables` of the source, or leave it out "
    "with `ignore`; the next `inlet run` decodes it",
    "unknown_operation": "map it with `operations` (GoldenGate messages), " + REPLAY + "; else " + RESEND,
    "ambiguous_table": "make `tables` of the source name one table for it, " + REPLAY,
    "ambiguous_layout": "set the option that the message names, " + REPLAY,
    "conflicting_duplicate": "compare both (`inlet rejects --raw`); if the first one is right, close the reject; if "
    "the second one is, load the table again",
    "missing_key": "correct `key` of the contract, or have the source send the key's columns (supplemental logging), "
    + REPLAY,
    "null_not_allowed": "remove `nullable: false` from the column in the contract, " + REPLAY,
    "definition_missing": "deliver what the message names: a definition file, a metadata message, a schema "
    "(`lookups`), a contract; the next `inlet run` decodes it",
    "part_missing": "deliver the other records of the change: the next `inlet run` decodes all; or raise "
    "`part_wait_minutes`",
    "definition_differs": "`inlet import` writes the new version of the contract; the next `inlet run` decodes it",
    "unknown_column": "add the column to the contract as a new version: `inlet import` where the feed gives "
    "column lists, else by hand (docs/schema_change.md); the next `inlet run` decodes it",
    "value_does_not_fit": "write a new version of the contract with a type that holds it (docs/schema_change.md; "
    "`until` may be the change_seq of the first such reject), " + REPLAY + "; a wrong value: have it sent again",
    "missing_change_seq": "set what the message names (an option such as `members`, `load_time` or `file_name`), "
    + REPLAY
    + "; or rename the file",
    "decoder_failed": "give the process more memory, or report it with the bytes of `inlet rejects --raw`; " + REPLAY,
    "link_outside": "deliver the file itself instead of a link; the next `inlet run` reads it",
    "invalid_utf8": "check what wrote the message: " + RESEND,
    "invalid_json": "check what wrote the message, and whether it was cut: " + RESEND,
    "invalid_xml": "check what wrote the message, and whether it was cut: " + RESEND,
    "trailing_data": "send one message a record, or a file as lines (`transport: lines`): " + RESEND,
    "duplicate_member": "check what wrote the message: " + RESEND,
    "wrong_shape": "check the codec of the source and the options that name members; " + REPLAY,
    "wrong_magic": "check the codec of the source, and whether `from` reads the right topic; " + REPLAY,
    "mask_too_long": "a column was probably added: add it to the contract as a new version (docs/schema_change.md); "
    "the next `inlet run` decodes it",
    "offsets_missing": "load the tables of the source again; then "
    "`inlet rejects --kind offsets_missing --close --reason TEXT`",
    "outside_mask": "value and mask contradict each other: report it with its bytes (`--raw`); " + RESEND,
    "unsupported_message": "set the option that the message names, " + REPLAY,
    "unreadable_file": "set what the message names (`transport`, an option), or deliver the file again; the next "
    "`inlet run` reads it",
    "bad_length": "check the options that describe records (docs/formats); a damaged file: deliver it again, "
    "`inlet replay --file PATH`",
    "truncated": "deliver the rest of the file; the next `inlet run` decodes it",
    "file_before_missing": "deliver the file before it; the next `inlet run` reads both",
    "file_purged": "load the table again: the end of that load resolves it",
    "files_may_be_missing": "load the table again: the end of that load resolves it; or close it if you know that no "
    "file was lost",
    "bad_column_count": "many alike: a column was added or dropped: write the new version of the contract "
    "(docs/schema_change.md), which `inlet run` decodes; one alone is damaged: deliver it in a new file, and close it",
    "unknown_extraction_id": "map the id in `tables` of the source; the next `inlet run` decodes it",
    "bad_null_indicator": "check the options `null_areas` and `validity_order`, and the columns of the contract; "
    + REPLAY,
    "bad_digit": "check type and scale of the column in the contract, and the option `numeric_sign`; " + REPLAY,
    "bad_sign": "check the type of the column in the contract, and the option `numeric_sign`; " + REPLAY,
    "bad_text": "set the character set of the source (`charset`, `code_page`, `nchar_charset`, `gaiji`); " + REPLAY,
    "bad_date": "check the type of the column in the contract; text that is no date: declare it as string; " + REPLAY,
    "bad_value_length": "check the length of the column in the contract, and the option `logtype`; " + REPLAY,
    "trailing_bytes": "check the columns of the contract: the record has more than they take; " + REPLAY,
    "bad_frame": "check the codec of the source; a damaged file: deliver it again, `inlet replay --file PATH`",
    "unknown_token": "report it with the bytes of `inlet rejects --raw`, or " + RESEND,
    "bad_header": "check the codec and the options of the source (docs/formats); a damaged file: deliver it again, "
    "`inlet replay --file PATH`",
    "unsupported_record": "write the feed without the feature that the message names; or load the table again and "
    "close the reject",
    "bad_segment": "deliver the file with all pieces again, `inlet replay --file PATH`",
    "column_twice": "check what wrote the record: " + RESEND,
    "cut_by_reclen": "print the records again with a longer RECLEN, and deliver the new text",
    "contradiction": "check the option that the message names, and the file's name; else " + RESEND,
    "out_of_sequence": "deliver the missing record or file before it; else " + RESEND,
    "encrypted_data": "write the trail without encryption, or decrypt it with a pump (DECRYPTTRAIL), and deliver that",
    "file_rewritten": "`inlet replay --file PATH` for a file that is whole now; another file under an old name (a "
    "rotated log): give it a name of its own, and close the reject",
}

package slots

import (
	"fmt"
	"strings"
)

// dialect are the statements of an import in the words of a database.
type dialect interface {
	// unbounded lifts the time-out of statements for one transaction; "" where there is none.
	unbounded() string
	// makeSlots makes the table of slots.
	makeSlots() []string
	// fill copies all JSON into it and registers unknown slots.
	fill() []string
	// follow makes the triggers by which the slots follow the JSON, and unfollow drops
	// them; lead and unlead are those by which the JSON follows the slots.
	follow() []string
	unfollow() []string
	lead() []string
	unlead() []string
	// differences asks for entity, column, slot and both amounts, where these differ.
	differences() string
}

// register adds the slots of a table to the registry that it does not know.
func register(slots string, yes, no string) string {
	return fmt.Sprintf(`INSERT INTO resource_slot_types (slot_name, slot_type, display_name, description, display_unit, number_format, rank, enabled, required, per_cluster, built_in, scale, resource_version)
		SELECT DISTINCT slot_name, 'count', slot_name, '', '', '', 0, %[2]s, %[3]s, %[3]s, %[3]s, 1, 0 FROM %[1]s WHERE true ON CONFLICT DO NOTHING`, slots, yes, no)
}

// differencesOf compares the amounts of documents with those of a table of slots.
func differencesOf(documents, slots, same string) string {
	return fmt.Sprintf(`SELECT coalesce(j.entity_id, s.entity_id) AS entity, coalesce(j.column_name, s.column_name) AS col, coalesce(j.slot_name, s.slot_name) AS slot,
			CASE WHEN j.entity_id IS NULL THEN 'none' ELSE coalesce(j.written, 'null') END,
			CASE WHEN s.entity_id IS NULL THEN 'none' ELSE coalesce(CAST(s.amount AS TEXT), 'null') END
		FROM (%s) AS j FULL JOIN "%s" AS s ON s.entity_id = j.entity_id AND s.column_name = j.column_name AND s.slot_name = j.slot_name
		WHERE j.entity_id IS NULL OR s.entity_id IS NULL OR NOT (%s) ORDER BY entity, col, slot`, documents, slots, same)
}

// postgres are the statements of PostgreSQL.
type postgres struct{ Source }

func (p postgres) unbounded() string { return "SET LOCAL statement_timeout = 0" }

func (p postgres) makeSlots() []string {
	return []string{fmt.Sprintf(`CREATE TABLE "%s" (
		entity_id TEXT NOT NULL, column_name TEXT NOT NULL, slot_name TEXT NOT NULL, amount NUMERIC(24,6), PRIMARY KEY (entity_id, column_name, slot_name))`, p.Slots())}
}

// number is what NUMERIC(24,6) holds without rounding.
const number = `^-?[0-9]{1,18}(\.[0-9]{1,6})?$`

// expanded are the slots of a document; row is the name of its row, and from what comes
// before the document's own rows.
func (p postgres) expanded(row, from, column string) string {
	return fmt.Sprintf(`SELECT %[1]s."%[2]s"::text AS entity_id, '%[3]s' AS column_name, e.key AS slot_name,
		CASE WHEN e.value ~ '%[5]s' THEN e.value::numeric(24,6) END AS amount, e.value AS written
		FROM %[4]s jsonb_each_text(CASE WHEN jsonb_typeof(%[1]s."%[3]s"::jsonb) = 'object' THEN %[1]s."%[3]s"::jsonb ELSE '{}' END) AS e`, row, p.ID, column, from, number)
}

// insert copies the slots of documents; amounts that are no numbers are left out, and
// validate lists them.
func (p postgres) insert(row, from string) []string {
	var all []string
	for _, c := range p.Columns {
		all = append(all, fmt.Sprintf(`INSERT INTO "%s" (entity_id, column_name, slot_name, amount)
			SELECT entity_id, column_name, slot_name, amount FROM (%s) AS x WHERE amount IS NOT NULL OR written IS NULL`, p.Slots(), p.expanded(row, from, c)))
	}
	return all
}

func (p postgres) fill() []string {
	return append(p.insert("t", fmt.Sprintf(`"%s" AS t CROSS JOIN LATERAL`, p.Table)), register(`"`+p.Slots()+`"`, "TRUE", "FALSE"))
}

// trigger names a trigger and its function.
func (p postgres) trigger(direction string) string { return `"` + p.Table + "_" + direction + `"` }

func (p postgres) follow() []string {
	body := append(p.insert("NEW", ""), register(fmt.Sprintf(`(SELECT slot_name FROM "%s" WHERE entity_id = NEW."%s"::text) AS n`, p.Slots(), p.ID), "TRUE", "FALSE"))
	return []string{
		fmt.Sprintf(`CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS $muster$ BEGIN
			IF TG_OP <> 'INSERT' THEN DELETE FROM "%s" WHERE entity_id = OLD."%s"::text; END IF;
			IF TG_OP <> 'DELETE' THEN %s; END IF;
			RETURN NULL; END $muster$`, p.trigger("to_slots"), p.Slots(), p.ID, strings.Join(body, ";\n")),
		fmt.Sprintf(`CREATE TRIGGER %s AFTER INSERT OR UPDATE OR DELETE ON "%s" FOR EACH ROW EXECUTE FUNCTION %[1]s()`, p.trigger("to_slots"), p.Table),
	}
}

func (p postgres) unfollow() []string {
	return []string{fmt.Sprintf(`DROP TRIGGER %s ON "%s"`, p.trigger("to_slots"), p.Table), fmt.Sprintf(`DROP FUNCTION %s()`, p.trigger("to_slots"))}
}

func (p postgres) lead() []string {
	var body []string
	for _, c := range p.Columns {
		// The assignment through a row's field casts into the column's type: json, jsonb or text.
		body = append(body, fmt.Sprintf(`IF changed.column_name = '%[1]s' THEN
			SELECT coalesce(jsonb_object_agg(slot_name, trim_scale(amount)::text), '{}') INTO document FROM "%[2]s" WHERE entity_id = changed.entity_id AND column_name = '%[1]s';
			entity."%[1]s" := document;
			UPDATE "%[3]s" SET "%[1]s" = entity."%[1]s" WHERE "%[4]s"::text = changed.entity_id; END IF;`, c, p.Slots(), p.Table, p.ID))
	}
	return []string{
		fmt.Sprintf(`CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS $muster$
			DECLARE changed "%s"%%ROWTYPE; entity "%s"%%ROWTYPE; document jsonb;
			BEGIN IF TG_OP = 'DELETE' THEN changed := OLD; ELSE changed := NEW; END IF; %s RETURN NULL; END $muster$`,
			p.trigger("to_json"), p.Slots(), p.Table, strings.Join(body, "\n")),
		fmt.Sprintf(`CREATE TRIGGER %s AFTER INSERT OR UPDATE OR DELETE ON "%s" FOR EACH ROW EXECUTE FUNCTION %[1]s()`, p.trigger("to_json"), p.Slots()),
	}
}

func (p postgres) unlead() []string {
	return []string{fmt.Sprintf(`DROP TRIGGER %s ON "%s"`, p.trigger("to_json"), p.Slots()), fmt.Sprintf(`DROP FUNCTION %s()`, p.trigger("to_json"))}
}

func (p postgres) differences() string {
	var parts []string
	for _, c := range p.Columns {
		parts = append(parts, p.expanded("t", fmt.Sprintf(`"%s" AS t CROSS JOIN LATERAL`, p.Table), c))
	}
	return differencesOf(strings.Join(parts, " UNION ALL "), p.Slots(), "(j.amount IS NOT NULL OR j.written IS NULL) AND s.amount IS NOT DISTINCT FROM j.amount")
}

// sqlite are the statements of SQLite, where amounts are decimal texts.
type sqlite struct{ Source }

func (q sqlite) unbounded() string { return "" }

func (q sqlite) makeSlots() []string {
	return []string{fmt.Sprintf(`CREATE TABLE "%s" (
		entity_id TEXT NOT NULL, column_name TEXT NOT NULL, slot_name TEXT NOT NULL, amount TEXT, PRIMARY KEY (entity_id, column_name, slot_name)) WITHOUT ROWID`, q.Slots())}
}

func (q sqlite) expanded(row, from, column string) string {
	return fmt.Sprintf(`SELECT CAST(%[1]s."%[2]s" AS TEXT) AS entity_id, '%[3]s' AS column_name, e.key AS slot_name,
		CASE WHEN e.atom IS NULL OR e.atom GLOB '*[^0-9.]*' OR e.atom NOT GLOB '[0-9]*' OR e.atom GLOB '*.' OR e.atom GLOB '*.*.*' OR e.atom GLOB '*.???????*'
			OR length(CAST(e.atom AS TEXT)) > 25 THEN NULL
			ELSE CASE WHEN CAST(e.atom AS TEXT) LIKE '%%.%%' THEN rtrim(rtrim(CAST(e.atom AS TEXT), '0'), '.') ELSE CAST(e.atom AS TEXT) END END AS amount,
		CAST(CASE WHEN e.type IN ('object', 'array') THEN e.value ELSE e.atom END AS TEXT) AS written
		FROM %[4]s json_each(CASE WHEN json_valid(%[1]s."%[3]s") AND json_type(%[1]s."%[3]s") = 'object' THEN %[1]s."%[3]s" ELSE '{}' END) AS e`, row, q.ID, column, from)
}

func (q sqlite) insert(row, from string) []string {
	var all []string
	for _, c := range q.Columns {
		all = append(all, fmt.Sprintf(`INSERT INTO "%s" (entity_id, column_name, slot_name, amount)
			SELECT entity_id, column_name, slot_name, amount FROM (%s) AS x WHERE amount IS NOT NULL OR written IS NULL`, q.Slots(), q.expanded(row, from, c)))
	}
	return all
}

func (q sqlite) fill() []string {
	return append(q.insert("t", fmt.Sprintf(`"%s" AS t CROSS JOIN`, q.Table)), register(`"`+q.Slots()+`"`, "1", "0"))
}

func (q sqlite) follow() []string {
	forget := fmt.Sprintf(`DELETE FROM "%s" WHERE entity_id = CAST(OLD."%s" AS TEXT);`, q.Slots(), q.ID)
	known := register(fmt.Sprintf(`(SELECT slot_name FROM "%s" WHERE entity_id = CAST(NEW."%s" AS TEXT)) AS n`, q.Slots(), q.ID), "1", "0")
	add := strings.Join(append(q.insert("NEW", ""), known), ";\n") + ";"
	trigger := func(event, body string) string {
		return fmt.Sprintf(`CREATE TRIGGER "%[1]s_to_slots_%[2]s" AFTER %[2]s ON "%[1]s" BEGIN %[3]s END`, q.Table, event, body)
	}
	return []string{trigger("INSERT", add), trigger("UPDATE", forget+"\n"+add), trigger("DELETE", forget)}
}

func (q sqlite) unfollow() []string { return q.drop("to_slots") }

func (q sqlite) drop(direction string) []string {
	var all []string
	for _, event := range []string{"INSERT", "UPDATE", "DELETE"} {
		all = append(all, fmt.Sprintf(`DROP TRIGGER "%s_%s_%s"`, q.Table, direction, event))
	}
	return all
}

func (q sqlite) lead() []string {
	var all []string
	for event, row := range map[string]string{"INSERT": "NEW", "UPDATE": "NEW", "DELETE": "OLD"} {
		var body []string
		for _, c := range q.Columns {
			body = append(body, fmt.Sprintf(`UPDATE "%[1]s" SET "%[2]s" = (SELECT json_group_object(slot_name, amount) FROM "%[3]s" WHERE entity_id = %[4]s.entity_id AND column_name = '%[2]s')
				WHERE CAST("%[5]s" AS TEXT) = %[4]s.entity_id AND %[4]s.column_name = '%[2]s';`, q.Table, c, q.Slots(), row, q.ID))
		}
		all = append(all, fmt.Sprintf(`CREATE TRIGGER "%s_to_json_%s" AFTER %[2]s ON "%s" BEGIN %s END`, q.Table, event, q.Slots(), strings.Join(body, "\n")))
	}
	return all
}

func (q sqlite) unlead() []string { return q.drop("to_json") }

func (q sqlite) differences() string {
	var parts []string
	for _, c := range q.Columns {
		parts = append(parts, q.expanded("t", fmt.Sprintf(`"%s" AS t CROSS JOIN`, q.Table), c))
	}
	return differencesOf(strings.Join(parts, " UNION ALL "), q.Slots(), "(j.amount IS NOT NULL OR j.written IS NULL) AND s.amount IS j.amount")
}

package capture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/record"
)

// objectPrefixes are those of the objects that operators write.
func objectPrefixes() []string { return edit.Prefixes() }

// redact returns the value of a key without the parts that no decision reads. kept is
// false of a key that a document does not have.
func redact(kv record.KV) (value []byte, kept bool, err error) {
	switch {
	case strings.HasPrefix(kv.Key, record.NodesPrefix):
		return redactNode(kv)
	case strings.HasPrefix(kv.Key, record.JobsPrefix):
		return rewrite(kv, func(r *record.Job) error {
			r.Made = named(r.Made)
			return bare(&r.Document)
		})
	case strings.HasPrefix(kv.Key, record.UnitsPrefix):
		return rewrite(kv, func(r *record.Unit) error {
			r.Made = named(r.Made)
			return bare(&r.Document)
		})
	}
	return kv.Value, true, nil
}

// named is a caller by name alone: without token, address and request id.
func named(a *record.Actor) *record.Actor {
	if a == nil {
		return nil
	}
	return &record.Actor{ID: a.ID, Person: a.Person, Tenant: a.Tenant}
}

// rewrite changes a record.
func rewrite[R record.Type](kv record.KV, change func(*R) error) (value []byte, kept bool, err error) {
	r, err := record.Decode[R](kv.Key, kv.Value)
	if err == nil {
		if err = change(&r); err == nil {
			value, err = record.Encode(r)
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", kv.Key, err)
	}
	return value, true, nil
}

// redactNode keeps the registration of a node and the notes of leaders about it. Reports
// and leases of agents are no part of a document: its nodes have their content.
func redactNode(kv record.KV) (value []byte, kept bool, err error) {
	key, err := record.ParseNodeKey(kv.Key)
	if err != nil {
		return nil, false, err
	}
	switch key.Part {
	case record.NodeSpecPart:
		return rewrite(kv, func(r *record.NodeSpec) error {
			r.AgentAddr, r.Annotations, r.Token, r.RegisteredBy, r.Registrations = "", nil, "", nil, nil
			return nil
		})
	case record.NodeStatusPart, record.NodeLeasePart:
		return nil, false, nil
	case record.NodeIdentityPart, record.NodeObservedPart, record.NodeLostPart, record.NodeTxPart:
	}
	return kv.Value, true, nil
}

// bare takes the commands and the annotations out of a submitted document. A command is
// "redacted" afterwards, since work without one is other work.
func bare(document *json.RawMessage) error {
	if len(*document) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(*document))
	d.UseNumber()
	var doc map[string]any
	if err := d.Decode(&doc); err != nil {
		return fmt.Errorf("document: %w", err)
	}
	bareObject(doc)
	if spec, is := doc["spec"].(map[string]any); is {
		if template, is := spec["template"].(map[string]any); is {
			bareObject(template)
		}
	}
	text, err := json.Marshal(doc)
	*document = text
	return err
}

// bareObject is bare of an object with metadata and spec.
func bareObject(doc map[string]any) {
	if meta, is := doc["metadata"].(map[string]any); is {
		if all, is := meta["annotations"].(map[string]any); is {
			for name := range all {
				if !decides(name) {
					delete(all, name)
				}
			}
		}
	}
	spec, is := doc["spec"].(map[string]any)
	if !is {
		return
	}
	delete(spec, "args")
	delete(spec, "env")
	delete(spec, "workingDir")
	if list, is := spec["command"].([]any); is && len(list) > 0 {
		spec["command"] = []any{"redacted"}
	}
}

// decides reports whether an annotation means a field of the specification (api.Group).
func decides(annotation string) bool {
	return strings.HasSuffix(annotation, "/gang-size") || strings.HasSuffix(annotation, "/max-wait")
}

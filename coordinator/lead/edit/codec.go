package edit

import (
	"encoding/json"
	"fmt"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/api/text"
	"github.com/musterd/muster/coordinator/record"
)

// Codec is the form of a kind's records in the store. Quota has one of its own, older
// than the others'.
type Codec struct {
	encode func(m api.ObjectMeta, document json.RawMessage) []byte
	decode func(kv record.KV) (record.Object, error)
}

// AsObject is the form record.Object.
var AsObject = Codec{
	encode: func(m api.ObjectMeta, document json.RawMessage) []byte {
		return record.MustEncode(record.Object{UID: m.UID, Name: m.Name, Created: m.CreationTimestamp, Document: document})
	},
	decode: func(kv record.KV) (record.Object, error) { return record.Decode[record.Object](kv.Key, kv.Value) },
}

// AsQuota is the form record.Quota.
var AsQuota = Codec{
	encode: func(m api.ObjectMeta, document json.RawMessage) []byte {
		return record.MustEncode(record.Quota{UID: m.UID, Namespace: m.Namespace, Name: m.Name, Created: m.CreationTimestamp, Document: document})
	},
	decode: func(kv record.KV) (record.Object, error) {
		rec, err := record.Decode[record.Quota](kv.Key, kv.Value)
		return record.Object{UID: rec.UID, Name: rec.Name, Created: rec.Created, Document: rec.Document}, err
	},
}

// Read reads an object from its key, with the server's part of its metadata.
func (k *Kind[T]) Read(kv record.KV) (*Kept[T], error) {
	rec, err := k.Codec.decode(kv)
	if err != nil {
		return nil, err
	}
	object, status := text.Stored(k.Decode, rec.Document)
	if status != nil {
		return nil, fmt.Errorf("%s: document: %w", kv.Key, status)
	}
	m := k.Meta(object)
	m.Name, m.UID, m.CreationTimestamp = rec.Name, rec.UID, rec.Created
	*m = At(*m, kv.ModRev)
	return &Kept[T]{*object, kv.ModRev}, nil
}

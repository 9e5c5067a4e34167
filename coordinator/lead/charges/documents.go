package charges

import (
	"encoding/json"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/quota/quotajson"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// SpecOf reads a tree's document.
func SpecOf(object api.QuotaTree) (quota.TreeSpec, *api.Status) {
	object.Kind = api.KindQuotaTree
	spec, err := quotajson.Tree(encodeDocument(object), quotajson.Natural)
	if err != nil {
		return spec, api.Errorf(422, "quota tree %s: %v", object.Metadata.Name, err)
	}
	return spec, nil
}

// RecordOf is how an object is stored: its document is what the operator set.
func RecordOf[T api.ResourceQuota | api.QuotaTree | api.QuotaBinding](m api.ObjectMeta, object T) *record.Quota {
	return &record.Quota{UID: m.UID, Namespace: m.Namespace, Name: m.Name, Created: m.CreationTimestamp, Document: encodeDocument(object)}
}

// encodeDocument writes the operator's part of an object.
func encodeDocument[T api.ResourceQuota | api.QuotaTree | api.QuotaBinding](object T) json.RawMessage {
	var m *api.ObjectMeta
	switch o := any(&object).(type) {
	case *api.ResourceQuota:
		m, o.Status = &o.Metadata, api.ResourceQuotaStatus{}
	case *api.QuotaTree:
		m, o.Status = &o.Metadata, api.QuotaTreeStatus{}
	case *api.QuotaBinding:
		m = &o.Metadata
	}
	return edit.Encode(&object, m)
}

// MetadataOf adds what is the server's to what an operator set.
func MetadataOf(r record.Quota, m api.ObjectMeta, rev resource.Revision) api.ObjectMeta {
	m.Namespace, m.Name, m.UID, m.CreationTimestamp = r.Namespace, r.Name, r.UID, r.Created
	return edit.At(m, rev)
}

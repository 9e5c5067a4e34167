package api

import (
	"encoding/json"
	"net/http"

	"github.com/musterd/muster/api/internal/strict"
)

// The kinds of quota documents.
const (
	KindResourceQuota = "ResourceQuota"
	KindQuotaTree     = "QuotaTree"
	KindQuotaForest   = "QuotaForest"
	KindQuotaBinding  = "QuotaBinding"
)

var (
	resourceQuotaDecoder = strict.For[ResourceQuota]()
	quotaTreeDecoder     = strict.For[QuotaTree]()
	quotaForestDecoder   = strict.For[QuotaForest]()
	quotaBindingDecoder  = strict.For[QuotaBinding]()
)

// QuotaDocument is one of the documents that operators keep in the store: those by
// which quota is set, tenants, namespaces, queues and role bindings.
type QuotaDocument interface {
	ResourceQuota | QuotaTree | QuotaForest | QuotaBinding | Tenant | Namespace | RoleBinding | Resource | Queue | PriorityClass
}

// DecodeResourceQuota reads and validates a resource quota as DecodeAllocation
// does an allocation. Of the fields that belong to the server, uid and resourceVersion stay: an
// update is made from it.
func DecodeResourceQuota(doc []byte) (*ResourceQuota, *Status) {
	return decodeValid(resourceQuotaDecoder, doc, func(q *ResourceQuota) *Status {
		status := q.Metadata.settable(&q.APIVersion, &q.Kind, KindResourceQuota)
		q.Status = ResourceQuotaStatus{}
		return allFaults(status, q.Validate())
	})
}

// DecodeQuotaTree reads a quota tree as DecodeResourceQuota does a resource
// quota. Its spec is kept as it was written: the decoder wants an object
// without repeated keys, nothing else.
func DecodeQuotaTree(doc []byte) (*QuotaTree, *Status) {
	return decodeValid(quotaTreeDecoder, doc, func(t *QuotaTree) *Status {
		status := t.Metadata.settable(&t.APIVersion, &t.Kind, KindQuotaTree)
		t.Status = QuotaTreeStatus{}
		return allFaults(status, t.Validate())
	})
}

// DecodeQuotaForest reads and validates a forest as DecodeResourceQuota does a
// resource quota.
func DecodeQuotaForest(doc []byte) (*QuotaForest, *Status) {
	return decodeValid(quotaForestDecoder, doc, func(f *QuotaForest) *Status {
		status := f.Metadata.settable(&f.APIVersion, &f.Kind, KindQuotaForest)
		return allFaults(status, f.Validate())
	})
}

// DecodeQuotaBinding reads and validates a binding as DecodeResourceQuota does
// a resource quota.
func DecodeQuotaBinding(doc []byte) (*QuotaBinding, *Status) {
	return decodeValid(quotaBindingDecoder, doc, func(b *QuotaBinding) *Status {
		status := b.Metadata.settable(&b.APIVersion, &b.Kind, KindQuotaBinding)
		return allFaults(status, b.Validate())
	})
}

// settable checks and names version and kind, and drops the fields that only the server
// may set, but for the resourceVersion.
func (m *ObjectMeta) settable(apiVersion, kind *string, want string) *Status {
	status := checkKind(*apiVersion, *kind, want)
	*apiVersion, *kind = APIVersion, want
	required := Preconditions{m.UID, m.ResourceVersion}
	m.dropServerFields()
	m.UID, m.ResourceVersion = required.UID, required.ResourceVersion
	return status
}

// MergePatch applies a merge patch (RFC 7386) to a document and returns the
// document that comes out, to be decoded in turn. A patch that is no object,
// or gives a field twice, is refused with 400.
func MergePatch[T QuotaDocument](target *T, patch []byte) ([]byte, *Status) {
	if len(patch) > MaxDocument {
		return nil, Errorf(http.StatusRequestEntityTooLarge, "the patch has %d bytes, the limit is %d", len(patch), MaxDocument)
	}
	doc, err := json.Marshal(target)
	if err != nil {
		return nil, Errorf(http.StatusInternalServerError, "encode what is to be patched: %v", err)
	}
	merged, wrong := strict.Merge(doc, patch)
	if wrong != nil {
		return nil, Errorf(http.StatusBadRequest, "%s", wrong.Error())
	}
	return merged, nil
}

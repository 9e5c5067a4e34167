package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/musterd/muster/api/internal/strict"
)

// MaxDocument is the largest document that is decoded, in bytes.
const MaxDocument = 1 << 20

// APIVersion may stand in every document and stands in every answer.
const APIVersion = "muster/v1"

// The kinds of documents.
const (
	KindAllocation = "Allocation"
	KindJob        = "Job"
	KindNode       = "Node"
)

var (
	allocationDecoder    = strict.For[Allocation]()
	jobDecoder           = strict.For[Job]()
	deleteOptionsDecoder = strict.For[DeleteOptions]()
)

// decode turns a refusal of the strict decoder into a Status: 400, or 422 for
// numbers no field can hold.
func decode[T any](d strict.Decoder[T], doc []byte) (*T, *Status) {
	if len(doc) > MaxDocument {
		return nil, Errorf(http.StatusRequestEntityTooLarge,
			"the document has %d bytes, the limit is %d", len(doc), MaxDocument)
	}
	v, err := d.Decode(doc)
	if err == nil {
		return v, nil
	}
	if err.Problem == strict.OutOfRange {
		return nil, Errorf(http.StatusUnprocessableEntity, "%s", err.Error())
	}
	return nil, Errorf(http.StatusBadRequest, "%s", err.Error())
}

// checkKind refuses documents of another kind or version.
func checkKind(apiVersion, kind, want string) *Status {
	if apiVersion != "" && apiVersion != APIVersion {
		return Errorf(http.StatusBadRequest, "apiVersion: want %q or nothing, got %q", APIVersion, apiVersion)
	}
	if kind != "" && kind != want {
		return Errorf(http.StatusBadRequest, "kind: want %q or nothing, got %q", want, kind)
	}
	return nil
}

// DecodeAllocation reads and validates a submission. Malformed documents are
// refused with 400; well-formed ones that no cluster could ever satisfy, or
// that contradict themselves, with 422. Both name the field and its value.
// Fields that belong to the server (status, uid, timestamps) are dropped, so that the
// output of a get may be submitted again.
func DecodeAllocation(doc []byte) (*Allocation, *Status) {
	a, status := StoredAllocation(doc)
	if status != nil {
		return nil, status
	}
	if status := a.Validate(); status != nil {
		return nil, status
	}
	return a, nil
}

// StoredAllocation reads a submission that was accepted before. An earlier
// version may have accepted documents that Validate refuses today.
func StoredAllocation(doc []byte) (*Allocation, *Status) {
	a, status := decode(allocationDecoder, doc)
	if status != nil {
		return nil, status
	}
	if status := checkKind(a.APIVersion, a.Kind, KindAllocation); status != nil {
		return nil, status
	}
	a.APIVersion, a.Kind = APIVersion, KindAllocation
	a.Metadata.dropServerFields()
	a.Status = AllocationStatus{}
	return a, nil
}

// DecodeJob reads and validates a job as DecodeAllocation does an allocation.
func DecodeJob(doc []byte) (*Job, *Status) {
	j, status := StoredJob(doc)
	if status != nil {
		return nil, status
	}
	if status := j.Validate(); status != nil {
		return nil, status
	}
	return j, nil
}

// StoredJob reads a job as StoredAllocation does an allocation.
func StoredJob(doc []byte) (*Job, *Status) {
	j, status := decode(jobDecoder, doc)
	if status != nil {
		return nil, status
	}
	if status := checkKind(j.APIVersion, j.Kind, KindJob); status != nil {
		return nil, status
	}
	j.APIVersion, j.Kind = APIVersion, KindJob
	j.Metadata.dropServerFields()
	j.Spec.Template.Metadata.dropServerFields()
	j.Status = JobStatus{}
	return j, nil
}

// dropServerFields clears the fields that only the server may set.
func (m *ObjectMeta) dropServerFields() {
	m.UID, m.ResourceVersion, m.CreationTimestamp, m.DeletionTimestamp = "", "", "", ""
	m.DeletionGracePeriodSeconds = nil
}

// MaxGracePeriodSeconds bounds the grace of a deletion: one day.
const MaxGracePeriodSeconds = 24 * 60 * 60

// The propagation policies of a deletion.
const (
	Foreground = "Foreground"
	Background = "Background"
)

// DecodeDeleteOptions reads the body of a delete or cancel; an empty body asks
// for the defaults.
func DecodeDeleteOptions(doc []byte) (DeleteOptions, *Status) {
	if len(doc) == 0 {
		return DeleteOptions{}, nil
	}
	o, status := decode(deleteOptionsDecoder, doc)
	if status != nil {
		return DeleteOptions{}, status
	}
	if status := checkGrace(o.GracePeriodSeconds); status != nil {
		return DeleteOptions{}, status
	}
	switch o.PropagationPolicy {
	case "", Foreground, Background:
	case "Orphan":
		return DeleteOptions{}, invalid("propagationPolicy", "%q: nothing may go on without an owner: want Foreground or Background", o.PropagationPolicy)
	default:
		return DeleteOptions{}, invalid("propagationPolicy", "%q: want Foreground or Background", o.PropagationPolicy)
	}
	if len(o.Reason) > 1024 {
		return DeleteOptions{}, invalid("reason", "%d bytes long, the limit is 1024", len(o.Reason))
	}
	return *o, nil
}

// PeekKind names the kind of a document without judging the rest: its own
// word, or Job where it has a spec.template and Allocation where it has not.
func PeekKind(doc []byte) (string, *Status) {
	var head struct {
		Kind string `json:"kind"`
		Spec struct {
			Template json.RawMessage `json:"template"`
		} `json:"spec"`
	}
	err := json.Unmarshal(doc, &head)
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType):
		return "", Errorf(http.StatusBadRequest, "%s: unexpected %s", wrongType.Field, wrongType.Value)
	case err != nil:
		return "", Errorf(http.StatusBadRequest, "the document is not JSON: %v", err)
	case head.Kind != "":
		return head.Kind, nil
	case head.Spec.Template != nil:
		return KindJob, nil
	}
	return KindAllocation, nil
}

package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

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

// decode turns the refusals of the strict decoder into a Status: 400, or 422 for
// numbers and characters no field can hold. The value is nil with every refusal.
func decode[T any](d strict.Decoder[T], doc []byte) (*T, *Status) {
	v, status := decodePart(d, doc)
	if status != nil {
		return nil, status
	}
	return v, nil
}

// decodePart is decode that returns the value of a document which can be read beside
// its faults: the value lacks the fields that have one.
func decodePart[T any](d strict.Decoder[T], doc []byte) (*T, *Status) {
	if len(doc) > MaxDocument {
		return nil, Errorf(http.StatusRequestEntityTooLarge,
			"the document has %d bytes, the limit is %d", len(doc), MaxDocument)
	}
	v, errs := d.Decode(doc)
	var faults faults
	for _, err := range errs {
		code := http.StatusBadRequest
		if err.Problem != strict.Malformed {
			code = http.StatusUnprocessableEntity
		}
		if err.Path == "" {
			faults.add(Errorf(code, "%s", err.Message))
		} else {
			faults.add(faultAt(code, err.Path, err.Message))
		}
	}
	return v, faults.status()
}

// decodeValid reads a document and validates it, so that the refusal has the faults of
// both. A fault that check finds in a field which could not be read is left out.
func decodeValid[T any](d strict.Decoder[T], doc []byte, check func(*T) *Status) (*T, *Status) {
	v, unread := decodePart(d, doc)
	if v == nil {
		return nil, unread
	}
	if status := allFaults(unread, beside(unread, check(v))); status != nil {
		return nil, status
	}
	return v, nil
}

// decodeOptions is decodeValid for the options of a request. An empty document has the
// zero value.
func decodeOptions[T any](d strict.Decoder[T], doc []byte, check func(*T) *Status) (T, *Status) {
	if len(doc) == 0 {
		return *new(T), nil
	}
	return decodeValue(d, doc, check)
}

// decodeValue is decodeValid that returns the value itself, and the zero value with each
// refusal.
func decodeValue[T any](d strict.Decoder[T], doc []byte, check func(*T) *Status) (v T, refused *Status) {
	o, status := decodeValid(d, doc, check)
	if status != nil {
		return v, status
	}
	return *o, nil
}

// beside is the refusal without the causes in fields that another refusal names.
func beside(unread, status *Status) *Status {
	if unread == nil || status == nil {
		return status
	}
	left := slices.DeleteFunc(slices.Clone(status.Causes), func(c Cause) bool {
		return slices.ContainsFunc(unread.Causes, func(u Cause) bool {
			return strings.HasPrefix(c.Field, u.Field) || strings.HasPrefix(u.Field, c.Field)
		})
	})
	if len(left) == 0 {
		return nil
	}
	other := *status
	other.Causes = left
	return &other
}

// checkKind refuses documents of another kind or version.
func checkKind(apiVersion, kind, want string) *Status {
	var faults faults
	if apiVersion != "" && apiVersion != APIVersion {
		faults.add(faultAt(http.StatusBadRequest, "apiVersion", fmt.Sprintf("want %q or nothing, got %q", APIVersion, clip(apiVersion))))
	}
	if kind != "" && kind != want {
		faults.add(faultAt(http.StatusBadRequest, "kind", fmt.Sprintf("want %q or nothing, got %q", want, clip(kind))))
	}
	return faults.status()
}

// DecodeAllocation reads and validates a submission. Malformed documents are
// refused with 400; well-formed documents that no cluster could ever satisfy, or
// that contradict themselves, with 422. Both name the field and its value.
// Fields that belong to the server (status, uid, timestamps) are dropped, so that the
// output of a get may be submitted again.
func DecodeAllocation(doc []byte) (*Allocation, *Status) {
	return decodeValid(allocationDecoder, doc, (*Allocation).check)
}

// KeptAllocation is DecodeAllocation for a caller that keeps the document beside the value
// and never changes the document: long strings of the value share its memory.
func KeptAllocation(doc []byte) (*Allocation, *Status) {
	return decodeValid(allocationDecoder.Sharing(), doc, (*Allocation).check)
}

func (a *Allocation) check() *Status { return allFaults(a.settle(), a.Validate()) }

// settle checks and names version and kind, and drops the fields of the server.
func (a *Allocation) settle() *Status {
	status := checkKind(a.APIVersion, a.Kind, KindAllocation)
	a.APIVersion, a.Kind = APIVersion, KindAllocation
	a.Metadata.dropServerFields()
	a.Status = AllocationStatus{}
	return status
}

// StoredAllocation reads a submission that was accepted before, as KeptAllocation does:
// nobody may change the document afterwards. An earlier version may have accepted
// documents that Validate refuses today.
func StoredAllocation(doc []byte) (*Allocation, *Status) {
	return decodeValid(allocationDecoder.Sharing().Stored(), doc, (*Allocation).settle)
}

// DecodeJob reads and validates a job as DecodeAllocation does an allocation.
func DecodeJob(doc []byte) (*Job, *Status) {
	return decodeValid(jobDecoder, doc, (*Job).check)
}

// KeptJob is DecodeJob as KeptAllocation is DecodeAllocation.
func KeptJob(doc []byte) (*Job, *Status) {
	return decodeValid(jobDecoder.Sharing(), doc, (*Job).check)
}

func (j *Job) check() *Status { return allFaults(j.settle(), j.Validate()) }

// settle is that of an allocation.
func (j *Job) settle() *Status {
	status := checkKind(j.APIVersion, j.Kind, KindJob)
	j.APIVersion, j.Kind = APIVersion, KindJob
	j.Metadata.dropServerFields()
	j.Spec.Template.Metadata.dropServerFields()
	j.Status = JobStatus{}
	return status
}

// StoredJob reads a job as StoredAllocation does an allocation.
func StoredJob(doc []byte) (*Job, *Status) {
	return decodeValid(jobDecoder.Sharing().Stored(), doc, (*Job).settle)
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
	return decodeOptions(deleteOptionsDecoder, doc, func(o *DeleteOptions) *Status {
		var faults faults
		faults.add(checkGrace(o.GracePeriodSeconds))
		switch o.PropagationPolicy {
		case "", Foreground, Background:
		case "Orphan":
			faults.add(invalid("propagationPolicy", "%q: nothing may go on without an owner: want Foreground or Background", o.PropagationPolicy))
		default:
			faults.add(invalid("propagationPolicy", "%q: want Foreground or Background", clip(o.PropagationPolicy)))
		}
		if len(o.Reason) > 1024 {
			faults.add(invalid("reason", "%d bytes long, the limit is 1024", len(o.Reason)))
		}
		return faults.status()
	})
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

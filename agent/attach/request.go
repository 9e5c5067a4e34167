package attach

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/musterd/muster/resource"
)

// maxBody bounds a request and an answer, in bytes.
const maxBody = 16 << 10

// Bounds of a request.
const (
	maxTransaction = 256
	maxMember      = 1 << 20
	maxPID         = 1 << 22 // of Linux
	maxPath        = 4096
)

// Request is the body of both requests. To attach it has either PID or Cgroup, to report
// the end it has Code.
type Request struct {
	Transaction resource.TxID `json:"transaction"`
	Member      int           `json:"member"`
	PID         int           `json:"pid,omitempty"`
	Cgroup      string        `json:"cgroup,omitempty"`
	Code        *int          `json:"code,omitempty"`
}

// answer is the body of an answer; Error is "" where the request was carried out.
type answer struct {
	Error string `json:"error,omitempty"`
}

// Refused is an answer that is no success.
type Refused struct {
	Status int // of HTTP
	Text   string
}

func (r *Refused) Error() string { return r.Text }

func refuse(status int, format string, args ...any) error {
	return &Refused{status, fmt.Sprintf(format, args...)}
}

// parseRequest reads a request. done: it reports an end.
func parseRequest(data []byte, done bool) (Request, error) {
	var q Request
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return Request{}, refuse(http.StatusBadRequest, "the request is no document of fields that are known: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Request{}, refuse(http.StatusBadRequest, "data follows the document")
	}
	if err := q.check(done); err != nil {
		return Request{}, &Refused{http.StatusUnprocessableEntity, err.Error()}
	}
	return q, nil
}

func (q *Request) check(done bool) error {
	switch {
	case q.Transaction == "" || len(q.Transaction) > maxTransaction || strings.ContainsRune(string(q.Transaction), 0):
		return fmt.Errorf("transaction %.80q: want the name of a transaction, 1 to %d bytes", q.Transaction, maxTransaction)
	case q.Member < 0 || q.Member > maxMember:
		return fmt.Errorf("member %d is outside 0..%d", q.Member, maxMember)
	case done && (q.PID != 0 || q.Cgroup != ""):
		return errors.New("done takes neither pid nor cgroup")
	case done && q.Code == nil:
		return errors.New("code: done wants the exit code, 0 to 255")
	case done && (*q.Code < 0 || *q.Code > 255):
		return fmt.Errorf("code %d is outside 0..255", *q.Code)
	case done:
		return nil
	case q.Code != nil:
		return errors.New("attach takes no code")
	case (q.PID != 0) == (q.Cgroup != ""):
		return errors.New("attach wants either pid or cgroup")
	case q.Cgroup == "" && (q.PID < 2 || q.PID > maxPID):
		return fmt.Errorf("pid %d is outside 2..%d", q.PID, maxPID)
	case q.Cgroup != "" && (!filepath.IsAbs(q.Cgroup) || filepath.Clean(q.Cgroup) != q.Cgroup || len(q.Cgroup) > maxPath || strings.ContainsRune(q.Cgroup, 0)):
		return fmt.Errorf("cgroup %.80q: want an absolute path of at most %d bytes", q.Cgroup, maxPath)
	}
	return nil
}

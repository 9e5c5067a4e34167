package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
)

// call is one request on its way to an endpoint.
type call struct {
	w         http.ResponseWriter
	r         *http.Request
	namespace string            // "" outside a namespace
	name      string            // "" for collections
	caller    service.Principal // the zero value where anyone may call
	// bootstrapToken is set in place of a caller where a host creates its own node.
	bootstrapToken string
	query          query
	taken          bool   // the body has been read
	sent           []byte // the body, once it is taken
	parked         bool   // the body is counted as that of a request that waits
	turn           *gate.Turn
	within         time.Duration // bounds the sending of the answer; 0 is writeTimeout
	// bodies release the bytes of the body that the caller holds, releases the other
	// bounds of the caller.
	bodies, releases []func()
}

// rewind makes the request as it was, for serving it again with less to wait.
func (c *call) rewind(wait time.Duration) {
	c.r.Body, c.r.ContentLength = io.NopCloser(bytes.NewReader(c.sent)), int64(len(c.sent))
	c.r.URL.RawQuery = withWait(c.r.URL.RawQuery, wait)
	c.query = query{}
}

func (c *call) ctx() context.Context { return c.r.Context() }

// asks reports whether a request has a parameter, however its name is written.
func (c *call) asks(parameter string) bool {
	// Query leaves out the parameters that cannot be read, which the endpoint refuses.
	return c.r.URL.RawQuery != "" && c.r.URL.Query().Has(parameter)
}

// release gives back the caller's bounds, but those of the body.
func (c *call) release() {
	for _, one := range c.releases {
		one()
	}
}

// collectWarnings makes that the answer of a request that is no read has the
// warnings that the Service adds.
func (c *call) collectWarnings() func() []string {
	if c.r.Method == http.MethodGet {
		return func() []string { return nil }
	}
	ctx, collected := service.WithWarnings(c.ctx())
	c.r = c.r.WithContext(ctx)
	return collected
}

// warnRecordedOnly warns of fields that have no effect.
func (c *call) warnRecordedOnly(fields []string) {
	if len(fields) > 0 {
		service.Warn(c.ctx(), "recorded but not acted on by this version: "+strings.Join(fields, ", "))
	}
}

// answer is the result of an endpoint.
type answer struct {
	code   int
	body   any
	head   []byte        // the body as JSON, or its beginning, where it is encoded already
	list   *pieces       // the rest of a list, after head; nil for everything else
	held   int64         // bytes of room.answers
	conn   net.Conn      // that of the request, below TLS; nil where unknown
	within time.Duration // bounds its sending; 0 is writeTimeout
	// shared: the request is one of several on its connection.
	shared bool
	// stream, where not nil, writes the answer in place of all of these, and
	// returns the status code.
	stream func() int
}

// encode makes the JSON of an answer that is no list.
func (a *answer) encode() {
	if a.head != nil {
		return
	}
	var err error
	if a.head, err = json.Marshal(a.body); err != nil {
		panic(err) // the answers' types can always be encoded
	}
	a.body = nil
}

func ok(body any) answer { return answer{code: http.StatusOK, body: body} }

package rest

import (
	"context"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/netlimit"
)

// Bounds of the memory that the requests of all clients hold together, beside those of
// package gate.
const (
	// maxAnswers bounds the lists and the large objects that are being written to
	// their readers, in bytes. The collector may let the heap grow to several
	// times of it.
	maxAnswers = 16 << 20
	// roomWithin is how long a request waits for room before it is refused.
	roomWithin = 2 * time.Second
	// retryAfter is the Retry-After of refused requests, in seconds.
	retryAfter = 1
)

// Connections limits the connections of the REST listener. Another coordinator, which is one address,
// may pass on service.MostForwards requests by connections of their own.
func Connections() netlimit.Limits {
	total := netlimit.Budget(4 * service.MostForwards)
	return netlimit.Limits{Total: total, Unproven: total * 3 / 4, PerAddress: total / 2}
}

// throttle names the bound that a request was refused at, as the label of the
// metric.
type throttle string

const (
	throttleBodies  throttle = "bodies"
	throttleWaits   throttle = "waits"
	throttleLists   throttle = "lists"
	throttleAnswers throttle = "answers"
	throttleWatches throttle = "watches"
	throttleRate    throttle = "rate"
	throttleCaller  throttle = "caller" // a bound of one user or tenant
	throttleTurn    throttle = "turn"   // 503: the coordinator is overloaded
)

// room is what the answers of one handler share.
type room struct {
	answers   *deliveries
	snapshots *semaphore.Weighted // of one: a snapshot is made and sent alone
}

func newRoom(m *metrics) *room {
	return &room{answers: newDeliveries(m.cut), snapshots: semaphore.NewWeighted(1)}
}

// take reserves n bytes, and waits a little where there is no room. The caller
// returns them by s.Release.
func take(ctx context.Context, s *semaphore.Weighted, n int64) bool {
	if s.TryAcquire(n) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, roomWithin)
	defer cancel()
	return s.Acquire(ctx, n) == nil
}

// throttled is the refusal of a request for which there is no room; the client
// may ask again.
func (h *handler) throttled(c *call, at throttle, format string, args ...any) *api.Status {
	h.metrics.refused(at)
	status := api.Errorf(http.StatusTooManyRequests, format, args...)
	status.RetryAfterSeconds = retryAfter
	return status
}

// holds reserves n more of the room that bodies take, until the request is over.
func (h *handler) holds(c *call, of gate.Bound, at throttle, n int64) *api.Status {
	release, status, shared := h.Gate.HoldShared(c.caller, of, n)
	switch {
	case status == nil:
		c.bodies = append(c.bodies, release)
	case shared:
		h.metrics.refused(at)
	default:
		h.metrics.refused(throttleCaller)
	}
	return status
}

// grow reserves room for more of a request's body.
func (h *handler) grow(c *call, n int) *api.Status {
	return h.holds(c, gate.Bodies, throttleBodies, int64(n))
}

// decoded decodes a document once there is room for its value.
func decoded[T any](h *handler, c *call, doc []byte, decode func([]byte) (*T, *api.Status)) (*T, *api.Status) {
	if n := int64(len(doc)); n > gate.SmallDocument {
		release, ok := h.Gate.Rooms.Decoded.Take(c.ctx(), c.caller, n)
		if !ok {
			return nil, h.throttled(c, throttleBodies, "large documents of others are being decoded; ask again")
		}
		defer release()
	}
	return decode(doc)
}

// park moves a body to the room of requests that wait: they may wait long, and
// must not keep others from sending theirs.
func (h *handler) park(c *call) *api.Status {
	n := int64(len(c.sent))
	if n == 0 || c.query.wait == 0 || c.parked {
		return nil
	}
	held := c.bodies
	c.bodies = nil
	status := h.holds(c, gate.Parked, throttleWaits, n)
	if status != nil {
		c.bodies = held
		return status
	}
	for _, release := range held {
		release()
	}
	c.parked = true
	return nil
}

// free gives back the memory that a request has reserved. It may be called
// twice.
func (h *handler) free(c *call) {
	for _, release := range c.bodies {
		release()
	}
	c.bodies, c.parked = nil, false
}

// listing runs list, which makes a list, once there is room for it and for a
// whole page of its answer; the room is kept until the answer is written.
func (h *handler) listing(c *call, list func() (answer, error)) (a answer, err error) {
	if status := h.bounded(c, gate.Lists, 1); status != nil {
		return answer{}, status
	}
	release, ok := h.Gate.Rooms.Lists.Take(c.ctx(), c.caller, 1)
	if !ok {
		return answer{}, h.throttled(c, throttleLists, "%d lists are being made and others wait; ask again", gate.MaxLists)
	}
	defer release()
	held := int64(maxPageBytes)
	if !h.room.answers.take(c.ctx(), held) {
		return answer{}, h.tooManyAnswers(c)
	}
	defer func() {
		if a.held == 0 { // after an error or a panic
			h.room.answers.room.Release(held)
		}
	}()
	if a, err = list(); err != nil {
		return answer{}, err
	}
	switch n := a.list.held(); {
	case n <= held:
		h.room.answers.room.Release(held - n)
		a.held = n
	case h.room.answers.take(c.ctx(), n-held): // one object, larger than a page
		a.held = n
	default:
		a.list.drop()
		return answer{}, h.tooManyAnswers(c)
	}
	return a, nil
}

// tooManyAnswers refuses an answer for which there is no room.
func (h *handler) tooManyAnswers(c *call) *api.Status {
	return h.throttled(c, throttleAnswers, "answers that are being sent take all of the %d MiB there are for them; ask again", maxAnswers>>20)
}

// reply encodes the answer of an endpoint and sends it.
func (h *handler) reply(c *call, a answer) int {
	if a.stream != nil {
		return a.stream()
	}
	if a.list == nil {
		a.encode()
		// A write's answer is never refused: it has been done.
		if n := int64(len(a.head)); n > smallAnswer && c.r.Method == http.MethodGet {
			if !h.room.answers.take(c.ctx(), n) {
				return h.refuse(c.w, h.tooManyAnswers(c))
			}
			a.held = n
		}
	}
	a.conn, a.shared = c.connection(), c.r.ProtoMajor > 1
	return h.write(c.w, a)
}

// connKey is the context's key of the request's connection.
type connKey struct{}

// withConnection is an http.Server's ConnContext.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, netlimit.Of(c))
}

// connection is the connection of a request that may be closed where its client
// does not take the answer; nil for a stream of several, which ends alone.
func (c *call) connection() net.Conn {
	if c.r.ProtoMajor > 1 {
		return nil
	}
	return connectionOf(c.ctx())
}

// connectionOf is the connection of a request, below TLS; nil where unknown.
func connectionOf(ctx context.Context) net.Conn {
	if c, ok := ctx.Value(connKey{}).(*netlimit.Conn); ok && c != nil {
		return c
	}
	return nil
}

// addressOf is the address that a request is counted under: an IPv4 address or a
// network of IPv6; "" where unknown.
func addressOf(r *http.Request) string {
	if c, ok := r.Context().Value(connKey{}).(*netlimit.Conn); ok && c != nil {
		return c.Address()
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}

// ProveConnection notes that a valid token came over the request's connection.
// Half of all places are for the proven connections of one address; those
// beyond count as unproven, and give way to others.
func ProveConnection(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*netlimit.Conn); ok && !c.Proven() {
		_ = c.Prove(c.Address(), Connections().Total/2) // the error is that it stays unproven
	}
}

package rest

import (
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
)

// This file has the requests of each caller take their turn, and bounds those that
// last. A request is counted first (counted.go), then read, and then decided on in its
// turn, so that a body that arrives slowly keeps nobody from a seat.

// begin gives a request its turn: at once where there is no body to read, else once
// the body is there (h.taken). The turn of a request that waits for its object is over
// before the wait.
func (h *handler) begin(c *call, who access) *api.Status {
	if who == anyone {
		return nil
	}
	c.turn = h.Gate.Turn(c.caller)
	if c.asks("wait") {
		if status := h.bounded(c, gate.Waits, 1); status != nil {
			return status
		}
	}
	if c.r.ContentLength != 0 && c.r.Method != http.MethodGet {
		return nil
	}
	return h.inTurn(c)
}

// charge takes a cost from the units of the caller.
func charge(h *handler, c *call, cost gate.Work) *api.Status {
	caller := h.sender(c)
	caller.Principal = c.caller
	status := h.Gate.Charge(caller, cost)
	if status != nil {
		h.metrics.refused(throttleRate)
	}
	return status
}

// inTurn waits for the turn of a request.
func (h *handler) inTurn(c *call) *api.Status {
	status := c.turn.Begin(c.ctx())
	if status != nil {
		h.metrics.refused(throttleTurn)
		return status
	}
	if c.asks("wait") {
		c.turn.End()
	}
	return nil
}

// bounded counts n more of a bound for the caller until the request is over.
func (h *handler) bounded(c *call, of gate.Bound, n int64) *api.Status {
	release, status := h.Gate.Hold(c.caller, of, n)
	if status != nil {
		h.metrics.refused(throttleCaller)
		return status
	}
	c.releases = append(c.releases, release)
	return nil
}

package rest

import (
	"time"

	"github.com/musterd/muster/coordinator/service"
)

// snapshotWithin bounds the time in which a snapshot is made, and then the time in which its
// reader takes it. A reader that takes nothing is cut as for other answers.
const snapshotWithin = 5 * time.Minute

// routeSnapshot registers the export of the scheduling state. A snapshot may be larger than
// the room of all answers, so it needs none of it; one is made and sent at a time.
func (h *handler) routeSnapshot(v1 string) {
	h.route("GET "+v1+"/snapshot", to(service.VerbGet, service.KindSnapshot), func(c *call) (a answer, err error) {
		if status := c.parameters(); status != nil {
			return answer{}, status
		}
		c.lasts(snapshotWithin)
		if !take(c.ctx(), h.room.snapshots, 1) {
			return answer{}, h.throttled(c, throttleAnswers, "another snapshot is being made or sent, one at a time; ask again")
		}
		defer func() {
			if a.stream == nil { // after an error or a panic
				h.room.snapshots.Release(1)
			}
		}()
		s, err := h.Service.TakeSnapshot(c.ctx())
		if err != nil {
			return answer{}, err
		}
		return answer{stream: func() int {
			defer h.room.snapshots.Release(1)
			whole := ok(s)
			whole.conn, whole.shared, whole.within = c.connection(), c.r.ProtoMajor > 1, c.within
			return h.write(c.w, whole)
		}}, nil
	})
}

package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/musterd/muster/api"
)

// rollCall bounds how long the other coordinators may take to answer.
const rollCall = time.Second

// listCoordinators shows every coordinator: this one, and the others as they
// answer now.
func (h *handler) listCoordinators(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	self := h.Roster.Self()
	items := h.Roster.Candidates()
	ctx, cancel := context.WithTimeout(c.ctx(), rollCall)
	defer cancel()
	var wg sync.WaitGroup
	present := false
	for i := range items {
		if items[i].ID == self.ID {
			present, items[i] = true, filled(items[i], self)
			continue
		}
		wg.Go(func() {
			said, err := h.ask(ctx, items[i].REST)
			if err != nil {
				items[i].Message = "does not answer: " + err.Error()
				return
			}
			items[i] = filled(items[i], said)
		})
	}
	wg.Wait()
	if !present {
		items = append(items, self)
	}
	newest := int64(0)
	for _, i := range items {
		newest = max(newest, i.Revision)
	}
	for i := range items {
		if items[i].Revision > 0 {
			items[i].Behind = newest - items[i].Revision
		}
	}
	return ok(&api.CoordinatorList{Kind: "CoordinatorList", Items: items}), nil
}

// filled joins the store's record of a coordinator and its own status.
func filled(known, said api.Coordinator) api.Coordinator {
	said.REST, said.GRPC, said.Epoch = cmp.Or(known.REST, said.REST), cmp.Or(known.GRPC, said.GRPC), cmp.Or(said.Epoch, known.Epoch)
	return said
}

// ask reads another coordinator's /readyz, which needs no token.
func (h *handler) ask(ctx context.Context, address string) (api.Coordinator, error) {
	var said api.Coordinator
	target, err := base(address)
	if err != nil {
		return said, err
	}
	target.Path = "/readyz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return said, err
	}
	answer, err := h.peers.Do(request)
	if err != nil {
		return said, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostRefusal))
	if err != nil {
		return said, err
	}
	if answer.StatusCode != http.StatusOK {
		return said, fmt.Errorf("it answers %s", answer.Status)
	}
	return said, json.Unmarshal(body, &said)
}

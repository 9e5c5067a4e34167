package rest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// listCoordinators shows every coordinator: this one, and the others as they
// answer now.
func (h *handler) listCoordinators(c *call) (answer, error) {
	if status := c.parameters(); status != nil {
		return answer{}, status
	}
	return ok(service.RollCall(c.ctx(), h.Roster, h.ask)), nil
}

// Asker returns the function that asks another coordinator for its state by its
// REST API, over TLS where that is.
func Asker(peerTLS *tls.Config) func(ctx context.Context, address string) (api.Coordinator, error) {
	h := &handler{peers: newPeerClient(Config{PeerTLS: peerTLS, DialPeer: peerDialer().DialContext})}
	return h.ask
}

// ask reads another coordinator's /readyz, which needs no token. A fault of the store
// is no fault of the coordinator.
func (h *handler) ask(ctx context.Context, address string) (api.Coordinator, error) {
	var said api.Coordinator
	target, err := base(address)
	if err != nil {
		return said, err
	}
	target.Path, target.RawQuery = "/readyz", excludeStore
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

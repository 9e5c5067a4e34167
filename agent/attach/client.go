package attach

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"
)

// DefaultSocket is where the packages have the socket.
const DefaultSocket = "/run/muster-agent/attach.sock"

// Attach attaches a process or a cgroup at a socket, and returns once that is durable. An
// answer that is no success is a *Refused.
func Attach(ctx context.Context, socket string, q Request) error {
	return ask(ctx, socket, attachPath, q)
}

// Done reports the exit code of work at a socket, and returns once the code is durable. An
// answer that is no success is a *Refused.
func Done(ctx context.Context, socket string, q Request) error {
	return ask(ctx, socket, donePath, q)
}

// repeatFor bounds the time in which a request is repeated that the agent has not answered,
// as while it starts anew or has too many connections. A request may be repeated.
const (
	repeatFor   = 10 * time.Second
	repeatEvery = 100 * time.Millisecond
)

func ask(ctx context.Context, socket, path string, q Request) error {
	for begun := time.Now(); ; {
		err := askOnce(ctx, socket, path, q)
		var r *Refused
		passing := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &r) && r.Status == http.StatusServiceUnavailable
		if !passing || time.Since(begun) >= repeatFor {
			return err
		}
		select {
		case <-time.After(repeatEvery):
		case <-ctx.Done():
			return err
		}
	}
}

// askOnce sends one request on a connection of its own.
func askOnce(ctx context.Context, socket, path string, q Request) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout+readTimeout)
	defer cancel()
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		var failed *net.OpError
		if errors.As(err, &failed) { // which repeats the path
			err = failed.Err
		}
		return c, err
	}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agent"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := transport.RoundTrip(r)
	if err != nil {
		return fmt.Errorf("the agent at %s: %w", socket, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return fmt.Errorf("the agent at %s has not answered: %w", socket, err)
	}
	var a answer
	if err := json.Unmarshal(data, &a); response.StatusCode != http.StatusOK || err != nil {
		if a.Error == "" {
			a.Error = fmt.Sprintf("status %s of %d bytes", response.Status, len(data))
		}
		return &Refused{response.StatusCode, a.Error}
	}
	return nil
}

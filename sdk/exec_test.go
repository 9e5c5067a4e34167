package sdk_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/resttest"
)

// TestASessionEndsWithTheCodeOfItsCommand, at the second server where the first is away.
func TestASessionEndsWithTheCodeOfItsCommand(t *testing.T) {
	cluster := resttest.New(time.Now)
	cluster.SetOutput("ml", "train")
	server := httptest.NewServer(rest.NewHandler(rest.Config{Service: cluster, Authenticator: service.StaticToken("secret")}))
	t.Cleanup(server.Close)
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	c, err := sdk.NewClient(sdk.Config{Endpoint: away.URL + "," + server.URL, Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}

	s, err := c.Jobs("ml").Exec(t.Context(), "train", sdk.ExecOptions{Command: []string{"false", "now"}})
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	exit, err := s.Run(&stdout, &stderr)
	if err != nil || exit.Code != 1 || stdout.String() != "false now\n" || stderr.String() != "failed\n" {
		t.Errorf("%+v %v, %q, %q", exit, err, stdout.String(), stderr.String())
	}

	// More input than the window: Write waits until the command has taken it.
	if s, err = c.Jobs("ml").Exec(t.Context(), "train", sdk.ExecOptions{Command: []string{"cat"}, Input: true}); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("0123456789abcdef", 1<<14)
	wrote := make(chan error, 1)
	go func() {
		_, err := io.Copy(s, strings.NewReader(text))
		wrote <- errors.Join(err, s.CloseInput())
	}()
	stdout.Reset()
	exit, err = s.Run(&stdout, &stderr)
	if err = errors.Join(err, <-wrote); err != nil || exit.Code != 0 || stdout.String() != "cat\n"+text {
		t.Errorf("%+v %v, %d bytes of output, want %d", exit, err, stdout.Len(), len(text)+4)
	}
	if _, err := s.Write([]byte("late")); err == nil {
		t.Error("a session that has ended takes input")
	}

	var status *api.Status
	if _, err := c.Jobs("ml").Exec(t.Context(), "eval", sdk.ExecOptions{Command: []string{"sh"}}); !errors.As(err, &status) || status.Code != http.StatusNotFound || !strings.Contains(status.Message, "eval") {
		t.Errorf("exec in a job that does not exist: %v", err)
	}
	if _, err := c.Jobs("ml").Exec(t.Context(), "train", sdk.ExecOptions{}); !errors.As(err, &status) || status.Code != http.StatusUnprocessableEntity {
		t.Errorf("exec without a command: %v", err)
	}
	if s, err = c.Jobs("ml").Exec(t.Context(), "train", sdk.ExecOptions{Command: []string{"cat"}, Input: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.Signal(9); err != nil {
		t.Fatal(err)
	}
	if exit, err = s.Run(&stdout, &stderr); err != nil || exit.Code != 137 || exit.Signal != 9 {
		t.Errorf("after a signal: %+v %v", exit, err)
	}
}

package rest

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Paths are sent as they are here, as no client of HTTP would.
func TestOddPathsAreRefused(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	inner := http.NewServeMux() // as the daemon has around the handler
	inner.Handle("/", NewHandler(Config{Service: stuck{let: closed()}, Authenticator: newCrowd()}))
	server.Config = NewServer(inner, slog.New(slog.DiscardHandler))
	server.Start()
	defer server.Close()
	for path, want := range map[string]int{
		"/api/v1/nodes/n":                                 200,
		"/api/v1/nodes/%6e":                               200, // a letter is a letter
		"/api/v1/namespaces/ml-team/../speech/jobs":       400,
		"/api/v1/namespaces/ml-team/./jobs":               400,
		"/api/v1/namespaces/%2e%2e/nodes/n":               400,
		"/api/v1/nodes/..":                                400,
		"/api/v1/namespaces/ml-team%2f..%2fspeech/jobs/x": 400,
		"/api/v1/nodes/a%2Fb":                             400,
		"/api/v1/resources/nvidia.com%2Fgpu":              400,
		"/api/v1/nodes/a%5cb":                             400,
		"/api/v1/nodes/a%00":                              400,
		"/api/v1/nodes/a%20b":                             400,
		"/api/v1/nodes/a%7f":                              400,
		"/api/v1/nodes/n%D0%BE":                           400, // Cyrillic
		"/api/v1/nodes/%EF%BC%8E%EF%BC%8E":                400, // full-width dots
		"/api/v1/nodes/%ff":                               400,
		"/api/v1/namespaces//jobs":                        400,
		"//api/v1/nodes":                                  400,
		"/api/v1/nodes/":                                  404,
		"/API/V1/nodes":                                   404,
		"/api/v1/nodes/N":                                 400,
		"/api/v1/namespaces/ML-Team/jobs/x":               400,
		"/api/v1/namespaces/speech/jobs/X_y":              400, // as of a name in a namespace of one's own
	} {
		connection, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ml-team\r\nConnection: close\r\n\r\n", path)
		answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if answer.StatusCode != want || !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") || answer.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: %d %v, want %d", path, answer.StatusCode, answer.Header, want)
		}
		_ = answer.Body.Close()
		_ = connection.Close()
	}
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// A parameter is found however its name is written: a watch or a wait is judged again
// when rights change, and bounded.
func TestParametersAreFoundHoweverTheyAreWritten(t *testing.T) {
	for query, want := range map[string]bool{
		"": false, "wait=10m": true, "wai%74=10m": true, "limit=1&w%61it=10m": true, "labelSelector=wait%3Da": false, "await=1": false, "%zz&wait=1s": true,
	} {
		r := httptest.NewRequest("GET", "/api/v1/nodes", nil)
		r.URL.RawQuery = query
		if got := (&call{r: r}).asks("wait"); got != want {
			t.Errorf("%q: %t, want %t", query, got, want)
		}
	}
}

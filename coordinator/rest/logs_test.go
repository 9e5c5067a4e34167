package rest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
)

func TestOutputIsALineForEachPiece(t *testing.T) {
	cluster := resttest.New(time.Now)
	binary := api.LogChunk{Member: 1, Node: "n2", Transaction: "t", Offset: 5}
	binary.SetBytes([]byte{0xff, 0})
	cluster.SetOutput("ml", "train", api.LogChunk{Member: 0, Node: "n1", Transaction: "t", Text: "step 1\n"}, binary, api.LogChunk{Member: 1, Message: "node n2 is away"})
	server := httptest.NewServer(rest.NewHandler(rest.Config{Service: cluster, Authenticator: service.StaticToken(token)}))
	t.Cleanup(server.Close)
	for name, c := range map[string]struct {
		query, want string
		code        int
	}{
		"all members": {"", `{"type":"OUTPUT","object":{"member":0,"node":"n1","transaction":"t","offset":0,"text":"step 1\n"}}
{"type":"OUTPUT","object":{"member":1,"node":"n2","transaction":"t","offset":5,"data":"/wA="}}
{"type":"OUTPUT","object":{"member":1,"offset":0,"message":"node n2 is away"}}
{"type":"END"}
`, http.StatusOK},
		"one member": {"?member=0&follow=true", `{"type":"OUTPUT","object":{"member":0,"node":"n1","transaction":"t","offset":0,"text":"step 1\n"}}
{"type":"END"}
`, http.StatusOK},
		"a member that is no number": {"?member=first", `query parameter member=\"first\": want the index of a member, from 0`, http.StatusBadRequest},
		"a negative member":          {"?member=-1", `member=\"-1\"`, http.StatusBadRequest},
		"follow is no bool":          {"?follow=maybe", `follow=\"maybe\": want true or false`, http.StatusBadRequest},
		"a parameter of others":      {"?watch=true", `takes follow, member`, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/namespaces/ml/jobs/train/logs"+c.query, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+token)
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != c.code || c.code == http.StatusOK && string(body) != c.want || !strings.Contains(string(body), c.want) {
				t.Errorf("%d %v\n%s\nwant %d\n%s", answer.StatusCode, err, body, c.code, c.want)
			}
		})
	}
}

package grpcapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/musterd/muster/api"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
)

// document is an allocation with an annotation of some bytes.
func document(name string, bytes int) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"annotations":{"note":%q}},"spec":{"resources":{"requests":{"cpu":"1m"}}}}`, name, strings.Repeat("x", bytes))
}

// create creates an allocation over REST in the namespace of a tenant, which is its token.
func create(ctx context.Context, address, tenant, text string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/api/v1/namespaces/"+tenant+"/allocations", strings.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+tenant)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusCreated {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	return err
}

// trickle is how often a client that stalls sends one byte.
const trickle = 20 * time.Millisecond

// bodiesByteByByte sends bodies of 1 MiB over REST, one byte at a time, until the door
// answers. It returns the status of each.
func bodiesByteByByte(t *testing.T, address string) (answers []string) {
	var mu sync.Mutex
	var clients sync.WaitGroup
	for range 64 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		fmt.Fprintf(c, "POST /api/v1/namespaces/lab/allocations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer lab\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", api.MaxDocument)
		answered := make(chan struct{})
		clients.Go(func() {
			for {
				select {
				case <-answered:
					return
				case <-time.After(trickle):
					if _, err := c.Write([]byte(" ")); err != nil {
						return
					}
				}
			}
		})
		clients.Go(func() {
			defer close(answered)
			line, err := bufio.NewReader(c).ReadString('\n')
			if err != nil {
				line = err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			answers = append(answers, strings.TrimSpace(line))
		})
	}
	clients.Wait()
	return answers
}

// messagesByteByByte is bodiesByteByByte over gRPC, with 48 calls on one connection.
func messagesByteByByte(t *testing.T, address string) (answers []string) {
	const calls = 48
	f := dialFraming(t, address)
	for i := range uint32(calls) {
		f.call(t, 2*i+1, createCall, "lab")
		f.send(2*i+1, announced(api.MaxDocument, 0), prefix, time.Second)
	}
	for open := true; open; {
		open = false
		for i := range uint32(calls) {
			f.mu.Lock()
			ends := f.answers[2*i+1] != ""
			f.mu.Unlock()
			if !ends {
				open = f.send(2*i+1, []byte{0}, 1, time.Second) == 1 || open
			}
		}
		time.Sleep(trickle)
	}
	for i := range uint32(calls) {
		answers = append(answers, f.answer(2*i+1))
	}
	return answers
}

// longEnough is a time in which the door has cut a socket that takes nothing: after 5 s,
// over HTTP/2 with 5 s more for each part of a write that got through.
const longEnough = 12 * time.Second

// listsUnread asks for lists of 2 MiB over REST, and reads the first line of each. It
// returns how each ends once the client reads on.
func listsUnread(t *testing.T, address string) (ends []string) {
	var clients []*stalling
	for range 24 {
		c, err := dialStalling(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		fmt.Fprintf(c, "GET /api/v1/namespaces/lab/allocations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer lab\r\n\r\n")
		clients = append(clients, c)
	}
	time.Sleep(longEnough)
	for _, c := range clients {
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			ends = append(ends, "cut")
			continue
		}
		if _, err = io.Copy(io.Discard, answer.Body); err != nil {
			ends = append(ends, "cut")
			continue
		}
		ends = append(ends, answer.Status)
	}
	return ends
}

// listsUnreadOverGRPC is listsUnread over gRPC, with 24 calls on two connections.
func listsUnreadOverGRPC(t *testing.T, address string) (ends []string) {
	var mu sync.Mutex
	var calls sync.WaitGroup
	for range 2 {
		conn, dialed := connectStalling(t, address)
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer lab")
		if _, err := apiv1.NewAllocationsClient(conn).Get(ctx, &apiv1.GetRequest{Namespace: "lab", Name: "a0"}); err != nil {
			t.Fatal(err)
		}
		c := <-dialed
		close(c.stops)
		for range 12 {
			calls.Go(func() {
				_, err := apiv1.NewAllocationsClient(conn).List(ctx, &apiv1.ListRequest{Namespace: "lab"})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					ends = append(ends, "200 OK")
				} else {
					ends = append(ends, "cut")
				}
			})
		}
		defer time.AfterFunc(longEnough, func() { close(c.goes) }).Stop()
	}
	calls.Wait()
	return ends
}

// A client that sends its requests byte by byte, or that reads nothing of its answers,
// is cut, and hurts itself alone: with all of that at once, a client of another tenant is
// served all the time, over REST and over gRPC, and the memory of the coordinator stays
// within the bounds of one user.
func TestClientsThatStallHurtThemselvesAlone(t *testing.T) {
	const most = 96 << 20
	address, _ := publicDoor(t)
	for i := range 10 {
		if err := create(t.Context(), address, "lab", document(fmt.Sprintf("a%d", i), 200<<10)); err != nil {
			t.Fatal(err)
		}
	}
	conn := connect(t, address)
	before := inUse()
	attacks := map[string]struct {
		attack func(*testing.T, string) []string
		end    string // of one request at least; the others may be refused
		may    string
	}{
		"bodies byte by byte over REST":     {bodiesByteByByte, "HTTP/1.1 400", "HTTP/1.1 429"},
		"messages byte by byte over gRPC":   {messagesByteByByte, "3 the message did not arrive in time", "8 "},
		"lists over REST that nobody reads": {listsUnread, "cut", "429"},
		"lists over gRPC that nobody reads": {listsUnreadOverGRPC, "cut", "cut"},
	}
	var mu sync.Mutex
	ends := map[string][]string{}
	var stalling sync.WaitGroup
	for name, c := range attacks {
		stalling.Go(func() {
			got := c.attack(t, address)
			mu.Lock()
			defer mu.Unlock()
			ends[name] = got
		})
	}
	over := make(chan struct{})
	go func() { defer close(over); stalling.Wait() }()
	rounds, grown, slowest := 0, int64(0), time.Duration(0)
	for serving := true; serving; rounds++ {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if err := create(ctx, address, "ml", document(fmt.Sprintf("h%d", rounds), 10)); err != nil {
			t.Errorf("creation %d of the honest client: %v", rounds, err)
		}
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer ml")
		if got, err := apiv1.NewAllocationsClient(conn).List(ctx, &apiv1.ListRequest{Namespace: "ml"}); err != nil || len(got.GetItems()) == 0 {
			t.Errorf("list %d of the honest client: %v", rounds, err)
		}
		cancel()
		slowest = max(slowest, time.Since(began))
		grown = max(grown, inUse()-before)
		select {
		case <-over:
			serving = false
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Logf("%d rounds of the honest client, the slowest %s; %d MiB more", rounds, slowest.Round(time.Millisecond), grown>>20)
	if grown > most {
		t.Errorf("the coordinator has grown by %d MiB, want at most %d", grown>>20, most>>20)
	}
	for name, c := range attacks {
		got := counts(ends[name])
		t.Logf("%s: %v", name, got)
		cut := false
		for end := range got {
			cut = cut || strings.HasPrefix(end, c.end)
			if !strings.HasPrefix(end, c.end) && !strings.HasPrefix(end, c.may) {
				t.Errorf("%s: one ends with %q", name, end)
			}
		}
		if !cut {
			t.Errorf("%s: none ends with %q, but with %v", name, c.end, got)
		}
	}
}

func counts(all []string) map[string]int {
	n := map[string]int{}
	for _, a := range all {
		n[a]++
	}
	return n
}

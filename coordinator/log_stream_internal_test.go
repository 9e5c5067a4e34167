package coordinator

import (
	"context"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
)

// Whatever the cuts, a reader gets all bytes in order, and text as text.
func TestPiecesOfOutputAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 40, 120).Draw(t, "text")
		isText := rapid.Bool().Draw(t, "isText")
		data := []byte(text)
		if !isText {
			data = append(data, rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes")...)
		}
		from := rapid.Int64Range(0, 1000).Draw(t, "from")
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s := &logStream{chunks: make(chan *api.LogChunk)}
		var got []byte
		done := make(chan struct{})
		go func() {
			defer close(done)
			for piece := range s.chunks {
				bytes, err := piece.Bytes()
				if err != nil || piece.Offset != from+int64(len(got)) {
					t.Errorf("a piece at %d behind %d bytes from %d: %v", piece.Offset, len(got), from, err)
				}
				if utf8.Valid(data) && piece.Data != "" {
					t.Errorf("%q came as data", bytes)
				}
				got = append(got, bytes...)
			}
		}()
		p := pieces{stream: s, ctx: ctx, at: from}
		for at := 0; at < len(data); {
			n := rapid.IntRange(1, len(data)-at).Draw(t, "n")
			if err := p.take(from+int64(at), data[at:at+n]); err != nil {
				t.Fatal(err)
			}
			at += n
		}
		if err := p.flush(); err != nil {
			t.Fatal(err)
		}
		close(s.chunks)
		<-done
		if string(got) != string(data) {
			t.Errorf("%q arrives as %q", data, got)
		}
	})
}

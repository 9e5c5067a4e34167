package shim

import (
	"bytes"
	"io"
	"testing"
)

// FuzzFrames reads frames from outside bytes: what is read is within its bounds, and is
// written as the same bytes.
func FuzzFrames(f *testing.F) {
	for _, frame := range []Frame{
		{FrameInput, []byte("text")}, {FrameInputEnd, nil}, {FrameResize, Window{24, 80}.Payload()}, {FrameSignal, []byte{15}},
		{FrameTaken, []byte{0, 0, 1, 0}}, {FrameExit, []byte(`{"version":1,"code":0,"reason":"Completed","at":"2026-01-02T03:04:05Z"}`)},
	} {
		var b bytes.Buffer
		if err := WriteFrame(&b, frame.Kind, frame.Payload); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
		f.Add(b.Bytes()[:b.Len()-1])
	}
	f.Add([]byte{'i', 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		from, back := bytes.NewReader(data), new(bytes.Buffer)
		for {
			frame, err := ReadFrame(from)
			if err == io.EOF && from.Len() == 0 && !bytes.Equal(back.Bytes(), data) {
				t.Errorf("%q is written as %q", data, back.Bytes())
			}
			if err != nil {
				return
			}
			if err := WriteFrame(back, frame.Kind, frame.Payload); err != nil {
				t.Fatal(err)
			}
			if n, err := ParseTaken(frame.Payload); err == nil && (n < 0 || n > InputWindow) {
				t.Errorf("%d bytes are taken", n)
			}
			if n, err := parseSignal(frame.Payload); err == nil && (n < 1 || n > 64) {
				t.Errorf("signal %d", n)
			}
			if w, err := parseWindow(frame.Payload); err == nil && !bytes.Equal(w.Payload(), frame.Payload) {
				t.Errorf("%v is %v", frame.Payload, w)
			}
		}
	})
}

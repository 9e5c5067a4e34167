package gossip

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hashicorp/serf/serf"
)

func TestCutAnswer(t *testing.T) {
	cases := map[string]struct {
		answer  string
		wantLen int
		wantCut bool
	}{
		"a short answer is whole":            {"8 GPUs free", 11, false},
		"1,024 bytes are whole":              {strings.Repeat("x", 1024), 1024, false},
		"1,025 bytes are cut":                {strings.Repeat("x", 1025), 1024, true},
		"no character is split":              {strings.Repeat("ü", 600), 1023, true},
		"bytes that are no text are cut too": {strings.Repeat("\x80", 5000), 1021, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := string(cutAnswer([]byte(c.answer)))
			if len(got) > answerLimit || len(got) != c.wantLen {
				t.Errorf("%d bytes, want %d", len(got), c.wantLen)
			}
			if cut := strings.HasSuffix(got, "\n…cut at 1024 bytes"); cut != c.wantCut {
				t.Errorf("says that it is cut: %t, want %t", cut, c.wantCut)
			}
			if utf8.ValidString(c.answer) && !utf8.ValidString(got) {
				t.Error("the answer ends within a character")
			}
		})
	}
}

func TestABusyInboxDropsAndCounts(t *testing.T) {
	b := newInbox(SerfConfig{}, func() {})
	for range inboxSize + 3 {
		b.HandleEvent(serf.UserEvent{Name: "hint"})
	}
	if got := b.dropped.Load(); got != 3 {
		t.Errorf("dropped %d, want 3", got)
	}
}

func TestMailboxFoldsPerKeyAndKeepsOrder(t *testing.T) {
	m := newMailbox[string, int]()
	m.put("a", 1)
	m.put("b", 2)
	m.put("a", 3)
	ctx, cancel := context.WithCancel(t.Context())
	var got []int
	m.deliver(ctx, func(v int) {
		got = append(got, v)
		if len(got) == 2 {
			m.put("c", 4)
		}
		if v == 4 {
			cancel()
		}
	})
	if want := []int{3, 2, 4}; !slices.Equal(got, want) {
		t.Errorf("delivered %v, want %v", got, want)
	}
}

func TestLogWriterReadsTheSeverity(t *testing.T) {
	cases := map[string]struct{ line, wantSeverity, wantText string }{
		"a warning with a time stamp": {"2026/01/02 15:04:05 [WARN] memberlist: Was able to connect\n", "warn", "memberlist: Was able to connect"},
		"an error":                    {"[ERR] serf: gone\n", "error", "serf: gone"},
		"a line without a mark":       {"plain\n", "info", "plain"},
		"an empty line":               {"", "info", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			severity, text := splitSeverity([]byte(c.line))
			if severity != c.wantSeverity || text != c.wantText {
				t.Errorf("%q, %q; want %q, %q", severity, text, c.wantSeverity, c.wantText)
			}
		})
	}
	var out bytes.Buffer
	w := logWriter{logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})), ring: "serf"}
	if n, err := w.Write([]byte("[WARN] serf: x\n")); n != 15 || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
	if got := out.String(); !strings.Contains(got, `level=DEBUG msg=ring_log ring=serf severity=warn text="serf: x"`) {
		t.Errorf("logged %q", got)
	}
}

func TestTagsSurviveSerfsForm(t *testing.T) {
	want := Tags{
		Role: RoleAgent, ID: "n", Addr: "127.0.0.1:1", Zone: "z", Rack: "r", Block: "b", Model: "m", API: "v1",
		Cell: "0", Capacity: "127.0.0.1:2",
	}
	if got := decodeTags(want.encode()); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := decodeTags(map[string]string{"dc": "x"}); got != (Tags{}) {
		t.Errorf("a foreign member's tags read as %+v", got)
	}
}

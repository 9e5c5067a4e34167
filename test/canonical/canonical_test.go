package canonical_test

import (
	"errors"
	"testing"
	"time"

	"github.com/musterd/muster/test/canonical"
)

type inner struct {
	N    int
	note string
}

type outer struct {
	Inner *inner
	Any   any
	Names map[string]*inner
	Bytes []byte
	At    time.Time
	Call  func()
	at    time.Time
}

func TestText(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 5, time.UTC)
	make1 := func() outer {
		return outer{
			Inner: &inner{1, "a b"}, Any: inner{N: 2}, Names: map[string]*inner{"y": {N: 4}, "x": {N: 3}, "none": nil},
			Bytes: []byte("raw"), At: at, Call: func() {}, at: at,
		}
	}
	text := canonical.Text(make1())
	for range 20 {
		if again := canonical.Text(make1()); again != text {
			t.Fatalf("two values of one content print as\n%s\n%s", text, again)
		}
	}
	for name, change := range map[string]func(*outer){
		"behind a pointer":      func(o *outer) { o.Inner.note = "c" },
		"the type in interface": func(o *outer) { o.Any = &inner{N: 2} },
		"in a map":              func(o *outer) { o.Names["x"].N = 9 },
		"bytes":                 func(o *outer) { o.Bytes[0] = 'R' },
		"a time":                func(o *outer) { o.At = o.At.Add(1) },
		"a private time":        func(o *outer) { o.at = o.at.Add(1) },
		"an error":              func(o *outer) { o.Any = errors.New("x") },
	} {
		changed := make1()
		if change(&changed); canonical.Text(changed) == text {
			t.Errorf("%s: another value prints alike: %s", name, text)
		}
	}
	if got, want := canonical.Text(map[string]error{"b": errors.New("x"), "a": nil}), `map["a":nil "b":*errors.errorString "x"]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

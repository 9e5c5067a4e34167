package service_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/service"
)

func TestWarningsAreBoundedAndSafe(t *testing.T) {
	ctx, collected := service.WithWarnings(t.Context())
	for i := range 100 {
		service.Warn(ctx, fmt.Sprint("warning ", i))
		service.Warn(ctx, "warning 0")
	}
	if got := collected(); len(got) != 17 || got[16] != "and 84 more warnings" {
		t.Errorf("got %d warnings, the last is %q", len(got), got[len(got)-1])
	}
	ctx, collected = service.WithWarnings(t.Context())
	service.Warn(ctx, "a\r\nSet-Cookie: b"+strings.Repeat("ü", 3000))
	service.Warn(ctx, "")
	if got := collected(); len(got) != 1 || len(got[0]) > 600 || strings.ContainsFunc(got[0], func(r rune) bool { return r < ' ' || r > '~' }) {
		t.Errorf("got %q", got)
	}
	service.Warn(t.Context(), "nobody listens")
}

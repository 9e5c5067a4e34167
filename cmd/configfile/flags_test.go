package configfile

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

func TestARefusalNamesTheFlagOrTheFileOfTheValue(t *testing.T) {
	listen, join := errors.New(`listen: "x": want HOST:PORT`), errors.New(`gossip.join[0]: "y": want HOST:PORT`)
	missing := fmt.Errorf("tokenFile: %w", fs.ErrNotExist)
	given := map[string]string{"listen": "listen", "gossip.join": "join", "tokenFile": "token-file"}
	for name, c := range map[string]struct {
		err   error
		file  string
		given map[string]string
		want  string
	}{
		"a flag":                            {listen, "", given, `--listen: "x": want HOST:PORT`},
		"an element of a flag's list":       {join, "", given, `--join[0]: "y": want HOST:PORT`},
		"a key without a flag":              {listen, "/c.yaml", nil, `config /c.yaml: listen: "x": want HOST:PORT`},
		"neither a flag nor a file":         {listen, "", nil, `listen: "x": want HOST:PORT`},
		"a key that another begins with":    {errors.New("listener: odd"), "", given, "listener: odd"},
		"both":                              {errors.Join(listen, errors.Join(join)), "/c.yaml", map[string]string{"gossip.join": "join"}, "--join[0]: \"y\": want HOST:PORT\nconfig /c.yaml: listen: \"x\": want HOST:PORT"},
		"a cause that callers look for":     {missing, "", given, "--token-file: file does not exist"},
		"a refusal that begins with no key": {errors.New("odd"), "/c.yaml", given, "config /c.yaml: odd"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NameOrigin(c.err, c.file, c.given); got == nil || got.Error() != c.want {
				t.Errorf("got  %v\nwant %s", got, c.want)
			}
		})
	}
	if NameOrigin(nil, "/c.yaml", given) != nil {
		t.Error("no error became one")
	}
	if !errors.Is(NameOrigin(missing, "", given), fs.ErrNotExist) {
		t.Error("the cause is lost")
	}
}

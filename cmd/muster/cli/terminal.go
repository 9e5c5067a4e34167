package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// isTerminal reports whether one of the program's streams is a terminal.
func isTerminal(stream any) bool {
	if v, ok := stream.(*visible); ok {
		stream = v.to
	}
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// style colours text for a terminal; the zero value leaves it as it is.
type style struct{ on bool }

// style returns how the program's output is coloured: on a terminal, unless
// NO_COLOR is set (https://no-color.org) or the terminal knows no colours.
func (a *app) style() style {
	return style{on: isTerminal(a.Stdout) && a.Env("NO_COLOR") == "" && a.Env("TERM") != "dumb"}
}

// The colours: codes of ECMA-48, select graphic rendition.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (s style) paint(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

package main

import (
	"io"
	"testing"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/cmd/muster/cli"
	"github.com/musterd/muster/cmd/muster/dev"
	"github.com/musterd/muster/test/manualtest"
)

// tree is all commands, as main makes them.
func tree() *cobra.Command {
	nothing := func(string) string { return "" }
	return cli.New(cli.Program{Stdout: io.Discard, Stderr: io.Discard, Env: nothing, Version: "test"}, dev.Command(dev.Options{Env: nothing, Usage: cli.Usage}))
}

func TestEveryCommandAndFlagHasAText(t *testing.T)   { manualtest.Texts(t, tree()) }
func TestTheReferenceOfCommandsIsFresh(t *testing.T) { manualtest.Page(t, tree()) }
func TestEveryCommandHasAManPage(t *testing.T)       { manualtest.Man(t, tree) }
func TestShellsGetACompletion(t *testing.T)          { manualtest.Completions(t, tree) }

package cli

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/coordinator/quota/replay"
)

func (a *app) quotaReplayCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "replay FILE…",
		Short: "Play recorded scenarios of quota trees and say where the outcome differs",
		Long: "replay plays scenarios, one JSON object a line, on the code that decides about quotas in\n" +
			"production. It prints each difference and at the end how many scenarios passed and failed. It\n" +
			"talks to no server. Files may be compressed with gzip; - is standard input.",
		Example: "  muster quota replay recorded/*.jsonl\n  zcat old.jsonl.gz | muster quota replay -",
		Args:    arguments(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.replay(args)
		},
	}
}

// outcome is the document of -o json and yaml.
type outcome struct {
	Passed     int        `json:"passed"`
	Failed     int        `json:"failed"`
	Mismatches []mismatch `json:"mismatches"`
}

// mismatch is one difference; op is -1 for the final state and for a scenario
// that cannot be played.
type mismatch struct {
	Scenario string `json:"scenario"`
	Op       int    `json:"op"`
	Call     string `json:"call,omitempty"`
	Field    string `json:"field"`
	Want     string `json:"want"`
	Got      string `json:"got"`
}

// replay plays every file that can be read, even where others cannot.
func (a *app) replay(files []string) error {
	out := bufio.NewWriter(a.Stdout)
	progress := a.newProgress()
	var failures []error
	result := outcome{Mismatches: []mismatch{}}
	report := func(m replay.Mismatch) {
		if a.isTable() {
			_, _ = fmt.Fprintln(out, m) // Flush reports
		} else {
			result.Mismatches = append(result.Mismatches, mismatch(m))
		}
	}
	for _, file := range files {
		name, source, err := a.recording(file)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		watched := &progressReader{Reader: source, progress: progress, name: name}
		p, f, err := replay.Run(watched, report)
		result.Passed, result.Failed = result.Passed+p, result.Failed+f
		if err = errors.Join(err, source.Close()); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", name, err))
		}
	}
	progress.clear()
	if result.Failed > 0 {
		failures = append(failures, fmt.Errorf("%d of %d scenarios have another outcome than recorded", result.Failed, result.Passed+result.Failed))
	}
	if !a.isTable() {
		return errors.Join(append(failures, a.encode(result))...)
	}
	_, _ = fmt.Fprintf(out, "%d passed, %d failed\n", result.Passed, result.Failed)
	if err := out.Flush(); err != nil {
		failures = append(failures, fmt.Errorf("write the result: %w", err))
	}
	return errors.Join(failures...)
}

// recording opens a file, or standard input for "-", and unpacks a file that gzip
// has packed.
func (a *app) recording(file string) (name string, source io.ReadCloser, err error) {
	name = file
	source = io.NopCloser(a.Stdin)
	if file == "-" {
		name = "standard input"
	} else if source, err = os.Open(file); err != nil {
		return name, nil, err
	}
	buffered := bufio.NewReaderSize(source, 1<<16)
	head, err := buffered.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return name, nil, errors.Join(fmt.Errorf("%s: %w", name, err), source.Close())
	}
	if !bytes.Equal(head, []byte{0x1f, 0x8b}) { // gzip, RFC 1952 section 2.3.1
		return name, stream{buffered, source}, nil
	}
	unpacked, err := gzip.NewReader(buffered)
	if err != nil {
		return name, nil, errors.Join(fmt.Errorf("%s: %w", name, err), source.Close())
	}
	return name, stream{unpacked, source}, nil
}

// stream reads here and closes there.
type stream struct {
	io.Reader
	io.Closer
}

// progressReader counts the scenarios that were read, for the progress.
type progressReader struct {
	io.Reader
	progress *progress
	name     string
	lines    int
}

// Read implements io.Reader.
func (r *progressReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.lines += bytes.Count(b[:n], []byte{'\n'})
	r.progress.show(func() string { return fmt.Sprintf("%s: %d scenarios", r.name, r.lines) })
	return n, err
}

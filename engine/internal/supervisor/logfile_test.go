package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	log, err := openLog(path, 1000)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for i := range 200 {
		fmt.Fprintf(log, "line %d\n", i)
	}
	for _, file := range []string{path, path + ".1"} {
		info, err := os.Stat(file)
		if err != nil || info.Size() > 1000 || info.Size() == 0 {
			t.Errorf("%s: %v %v", file, info, err)
		}
	}
	files, _ := filepath.Glob(path + "*")
	content, _ := os.ReadFile(path)
	if len(files) != 2 || !strings.HasSuffix(string(content), "line 199\n") {
		t.Errorf("%v ends in %q", files, content[max(0, len(content)-20):])
	}
}

func TestLogGoesOnWhereItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	for _, text := range []string{"one\n", "two\n"} {
		log, err := openLog(path, 1000)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(log, text)
		log.Close()
	}
	if content, _ := os.ReadFile(path); string(content) != "one\ntwo\n" {
		t.Errorf("%q", content)
	}
}

func TestTailKeepsTheLastLines(t *testing.T) {
	log, err := openLog(filepath.Join(t.TempDir(), "a.log"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	fmt.Fprint(log, "half a")
	fmt.Fprint(log, " line\n\n")
	fmt.Fprint(log, strings.Repeat("x", 3*lineLimit)+"\n")
	tail := log.Tail()
	if len(tail) != 2 || tail[0] != "half a line" || len(tail[1]) > lineLimit {
		t.Errorf("%d lines: %.100q", len(tail), tail)
	}
	for i := range 100 {
		fmt.Fprintf(log, "%d\n", i)
	}
	if tail := log.Tail(); len(tail) != tailLines || !slices.Equal(tail[tailLines-2:], []string{"98", "99"}) {
		t.Errorf("%q", tail)
	}
}

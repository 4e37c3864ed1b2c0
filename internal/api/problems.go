package api

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed problems.txt
var problemsFile string

// problemText describes problem codes that share a status, a meaning and a solution.
type problemText struct {
	status            int
	codes             []string
	meaning, solution string
}

// readProblems parses the content of problems.txt.
func readProblems(file string) (all []problemText, err error) {
	for line := range strings.Lines(file) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		head, text, ok := strings.Cut(strings.TrimSpace(line), ": ")
		status, codes, hasCodes := strings.Cut(head, " ")
		meaning, solution, hasSolution := strings.Cut(text, " | ")
		p := problemText{codes: strings.Split(codes, ", "), meaning: meaning, solution: solution}
		p.status, err = strconv.Atoi(status)
		if err != nil || !ok || !hasCodes || !hasSolution {
			return nil, fmt.Errorf("problems.txt: malformed line %q", line)
		}
		all = append(all, p)
	}
	return all, nil
}

// problemCodes returns the codes of all problems, ordered by status.
func problemCodes() (codes []string) {
	all, err := readProblems(problemsFile)
	if err != nil {
		panic(err) // the file is part of the program, and a test reads it
	}
	for _, p := range all {
		codes = append(codes, p.codes...)
	}
	return codes
}

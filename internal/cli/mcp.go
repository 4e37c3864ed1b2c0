package cli

import (
	"bufio"
	"context"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"assay/internal/config"
)

// mcpCmd serves the Model Context Protocol on standard input and output.
type mcpCmd struct {
	AllowWrites bool `help:"Also offer the tools that change something: start and cancel a refresh, pause and resume a provider, accept a quarantine or a held price."`
}

func (*mcpCmd) examples() []example {
	return []example{
		{"mcp", "serve tools that read prices, for a program that starts this command"},
		{"mcp --allow-writes", "also serve tools that refresh prices and control providers"},
	}
}

// mcpInstructions describe the server to a model.
const mcpInstructions = "Assay keeps the prices of game items up to date. Item names are market hash names and must match exactly: find them with search_items. " +
	"appId is the Steam app ID of the game (730 is CS2, the default). Prices are decimal numbers in the currency that each result names."

func (c *mcpCmd) Run(ctx context.Context, s *session) error {
	api, err := s.server()
	if err != nil {
		return err
	}
	if missing := api.credentials[config.RoleMarket].missing; missing != nil {
		return missing
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "assay", Version: readBuild().Version}, &mcp.ServerOptions{Instructions: mcpInstructions})
	addReadTools(server, api)
	if c.AllowWrites {
		addWriteTools(server, api)
	}
	out := &sharedWriter{to: s.Stdout}
	in := &mcpLines{in: bufio.NewReader(s.Stdin), out: out}
	return server.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: out})
}

// tool is a tool of the MCP server.
type tool struct {
	name, title, does string
	writes            bool
	empty             bool // the response has no body
}

// addTool adds a tool that sends one request to the server and returns its response. The
// library derives the schema of the arguments from In and rejects arguments that do not match.
func addTool[In any](server *mcp.Server, api *client, t tool, build func(In) request) {
	description := &mcp.Tool{Name: t.name, Description: t.does, Annotations: &mcp.ToolAnnotations{
		Title: t.title, ReadOnlyHint: !t.writes, OpenWorldHint: new(false), DestructiveHint: new(false), IdempotentHint: !t.writes,
	}}
	mcp.AddTool(server, description, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		r := build(in)
		r.as = config.RoleMarket
		var body jsontext.Value
		var into any = &body
		if t.empty {
			into = nil
		}
		if err := api.do(ctx, r, into); err != nil {
			var text strings.Builder
			printError(&text, err)
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text.String()}}}, nil, nil
		}
		if t.empty {
			body = jsontext.Value(`{"done":true}`)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(body)}}}, nil, nil
	})
}

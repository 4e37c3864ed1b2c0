package cli

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"assay/internal/app"
	"assay/internal/config"
)

// settingFlags are flags for the settings that have none of their own in
// globals: MARKET_PRICE_TTL is --market-price-ttl. They work everywhere and are
// left out of the help of each command, since `assay config` lists them.
type settingFlags struct {
	names  []string      // of the settings, one for each field
	values reflect.Value // a pointer to a struct of *string, as kong wants it
}

// newSettingFlags returns flags for everything that may be given as one:
// secrets may not, but the files that hold them may.
func newSettingFlags() settingFlags {
	own := []string{"DATA_DIR", "LISTEN_ADDR", "LOG_LEVEL"}
	var f settingFlags
	var fields []reflect.StructField
	add := func(name string) {
		flag := strings.TrimPrefix(config.FlagName(name), "--")
		fields = append(fields, reflect.StructField{
			Name: "Flag" + name, Type: reflect.TypeFor[*string](),
			Tag: reflect.StructTag(fmt.Sprintf(`name:%q hidden:""`, flag)),
		})
		f.names = append(f.names, name)
	}
	for _, d := range config.Definitions(app.Providers()) {
		if !d.Secret && !slices.Contains(own, d.Name) {
			add(d.Name)
		}
		if d.File {
			add(d.Name + "_FILE")
		}
	}
	f.values = reflect.New(reflect.StructOf(fields))
	return f
}

// option makes kong take the flags.
func (f settingFlags) option() kong.Option { return kong.Embed(f.values.Interface()) }

// given returns the settings that were given as flags, by name.
func (f settingFlags) given() map[string]string {
	given := map[string]string{}
	for i, name := range f.names {
		if value := f.values.Elem().Field(i).Interface().(*string); value != nil {
			given[name] = *value
		}
	}
	return given
}

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

// settingFlags are flags for all settings that globals does not declare. For example,
// --market-price-ttl sets MARKET_PRICE_TTL. Every command accepts them. The help omits them
// because `assay config` lists all settings.
type settingFlags struct {
	names  []string      // setting of each field
	values reflect.Value // pointer to a struct of *string fields, as kong requires
}

// newSettingFlags returns a flag for each setting. A secret has no flag, but the setting for
// its file has one.
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

// option adds the flags to a parser.
func (f settingFlags) option() kong.Option { return kong.Embed(f.values.Interface()) }

// given returns the settings set by flags, by name.
func (f settingFlags) given() map[string]string {
	given := map[string]string{}
	for i, name := range f.names {
		if value := f.values.Elem().Field(i).Interface().(*string); value != nil {
			given[name] = *value
		}
	}
	return given
}

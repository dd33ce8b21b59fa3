package tests

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"toolgate"
	"toolgate/config"
	"toolgate/httpclient"
	"toolgate/keyvalue"
	"toolgate/nethttp"
	"toolgate/toolgatetest"
)

type remember struct {
	Word string `json:"word"`
}

func rememberWord(call *toolgate.Call, args remember) ([]string, error) {
	bucket, err := keyvalue.Open()
	if err != nil {
		return nil, err
	}
	tries := 0
	err = keyvalue.Update(bucket, "words", func(words *[]string) error {
		if tries++; tries == 1 && args.Word == "raced" {
			if err := keyvalue.Write(bucket, "words", []string{"faster"}); err != nil {
				return err
			}
		}
		*words = append(*words, args.Word)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if _, err := bucket.Increment("count", 2); err != nil {
		return nil, err
	}
	words, _, err := keyvalue.Read[[]string](bucket, "words")
	if err != nil {
		return nil, err
	}
	keys, err := bucket.Keys("co")
	return append(words, keys...), err
}

type fetching struct {
	Plain bool `json:"plain,omitempty"`
}

func fetch(call *toolgate.Call, args fetching) (string, error) {
	token, err := config.Require("token")
	if err != nil {
		return "", err
	}
	if args.Plain {
		response, err := httpclient.Do(httpclient.Request{
			Method: "POST", URL: "https://api.example.com/v1?q=1", Body: []byte("body"),
			Header: []httpclient.Field{{Name: "authorization", Value: "Bearer " + token}},
		})
		if err != nil {
			return "", err
		}
		return string(response.Body), response.Check()
	}
	request, err := http.NewRequest("POST", "https://api.example.com/v1?q=1", strings.NewReader("body"))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if err := nethttp.Check(response); err != nil {
		return "", err
	}
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

func init() {
	toolgate.Register(
		toolgate.Server("remember", "Remembers.", rememberWord),
		toolgate.Server("fetch", "Fetches.", fetch),
	)
}

func TestAStoreOutlastsACall(t *testing.T) {
	store := &toolgatetest.Store{}
	call := toolgatetest.Call{Tool: "remember", Arguments: remember{"a"}, Store: store}
	call.Run(t).WantResult(t, []string{"a", "count"})
	call.Run(t).WantResult(t, []string{"a", "a", "count"})
	if value, _, _ := store.Get("count"); string(value) != "4" {
		t.Errorf("count is %s", value)
	}
	toolgatetest.Run(t, "remember", remember{"b"}).WantResult(t, []string{"b", "count"})
}

func TestAnUpdateThatLosesARaceStartsAgain(t *testing.T) {
	toolgatetest.Run(t, "remember", remember{"raced"}).WantResult(t, []string{"faster", "raced", "count"})
}

func TestWhatIsStoredAndUnreadableIsAFailure(t *testing.T) {
	store := &toolgatetest.Store{}
	store.Set("words", []byte("{"))
	toolgatetest.Call{Tool: "remember", Arguments: remember{"a"}, Store: store}.Run(t).WantFailure(t, toolgate.KindFailed)
	if value, _, _ := store.Get("words"); string(value) != "{" {
		t.Errorf("it was written over: %s", value)
	}
}

func TestRequestsGoWhereTheTestSays(t *testing.T) {
	status := 200
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(status)
		fmt.Fprint(w, r.Method, " ", r.URL, " ", r.Header.Get("Authorization"), " ", string(body))
	})
	for _, plain := range []bool{false, true} {
		status = 200
		call := toolgatetest.Call{
			Tool: "fetch", Arguments: fetching{plain}, Config: map[string]string{"token": "t"}, HTTP: handler,
		}
		call.Run(t).WantResult(t, "POST https://api.example.com/v1?q=1 Bearer t body")
		for code, kind := range map[int]toolgate.Kind{
			404: toolgate.KindFailed, 429: toolgate.KindUnavailable, 503: toolgate.KindUnavailable,
		} {
			status = code
			call.Run(t).WantFailure(t, kind)
		}
	}
}

func TestWithoutGrantsRequestsAreDenied(t *testing.T) {
	run := toolgatetest.Call{Tool: "fetch", Config: map[string]string{"token": "t"}}.Run(t)
	run.WantFailure(t, toolgate.KindFailed)
	if !strings.Contains(run.Message, "does not allow the request") {
		t.Error(run.Message)
	}
	run = toolgatetest.Run(t, "fetch", nil)
	run.WantFailure(t, toolgate.KindFailed)
	if !strings.Contains(run.Message, `"token"`) {
		t.Error(run.Message)
	}
}

func TestLargeNumbersAreExactInIntegers(t *testing.T) {
	run := toolgatetest.Run(t, "number", json.RawMessage(`{"n":9007199254740993}`))
	if run.Text != "9007199254740993" {
		t.Error(run.Text)
	}
}

func init() {
	toolgate.Register(toolgate.Server("number", "Gives it back.", func(_ *toolgate.Call, args struct {
		N int64 `json:"n"`
	}) (int64, error) {
		return args.N, nil
	}))
}

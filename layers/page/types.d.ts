/** An object of JSON as the API, or `darkroom operate`, writes it. */
type Json = Record<string, any>;

"""The names of environment variables that may hold keys of language models; no world and no tool may send them."""

import re

_MODEL_KEY_PATTERN = re.compile(
    r"(SHOWHOW|OPENAI|AZURE|ANTHROPIC|CLAUDE|GOOGLE|GEMINI|VERTEX|VERTEXAI|COHERE|FIREWORKS|TOGETHER|MISTRAL|MISTRALAI"
    r"|HUGGINGFACE|HUGGINGFACEHUB|HF|HUGGING_FACE|GROQ|DEEPSEEK|XAI|PERPLEXITY|PPLX|NVIDIA|AWS|BEDROCK|WATSONX|IBM"
    r"|OPENROUTER|OLLAMA|LITELLM|LANGCHAIN|LANGSMITH|CEREBRAS|SAMBANOVA|DASHSCOPE|MOONSHOT|UPSTAGE|REPLICATE|AI21|DATABRICKS"
    r"|TOGETHERAI|VOYAGE|ZHIPUAI|ARK|NEBIUS|JINA|WRITER|QIANFAN|GIGACHAT|LLM|MODEL"
    r")_\w+|CO_API_KEY|\w*(OPENAI|ANTHROPIC|GEMINI|LLM)\w*KEY\w*",
    re.IGNORECASE,
)


_CREDENTIAL_PATTERN = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|DATABASE_URL", re.IGNORECASE)


def is_model_key(variable: str) -> bool:
    """Whether the variable belongs to Showhow or to a known provider of language models."""
    return _MODEL_KEY_PATTERN.fullmatch(variable) is not None


def is_credential(variable: str) -> bool:
    """Whether the value of such a variable is secret: a key, not an address or a name."""
    return is_model_key(variable) and _CREDENTIAL_PATTERN.search(variable) is not None

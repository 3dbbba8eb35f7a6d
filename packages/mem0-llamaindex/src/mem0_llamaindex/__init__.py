"""Long-term memory for LlamaIndex chat engines and agent workflows, over mem0-core.

>>> from mem0_llamaindex import Mem0Memory
>>> memory = Mem0Memory.from_defaults(user_id="maya")
>>> engine = SimpleChatEngine.from_defaults(llm=llm, memory=memory)
"""

from mem0_llamaindex.memory import Mem0Memory

__all__ = ["Mem0Memory"]
__version__ = "0.1.0"

"""Patterns of English clauses that ask, state or say nothing; all are for text in lower case, unless noted."""

from __future__ import annotations

import re

JUDGEMENT = re.compile(
    r"(?:(?:that|this|it|which|you)(?: really| certainly)?"
    r"(?: is| was|'s| sounds| looks| seems| feels| helped| helps| works| worked| makes| are| were)|so|how|very"
    r"|really|quite|what)"
    r"(?: (?:a|an|so|very|really|just|all|quite|pretty|too|extremely|super|indeed|to|hear|know|for|me|now|then"
    r"|such|much|lot"
    r"|new|great|good|perfect|perfectly|nice|kind|helpful|wonderful|amazing|awesome|interesting|lovely|fantastic"
    r"|excellent|cool"
    r"|fine|ok|okay|right|correct|true|wrong|fun|funny|better|best|exciting|useful|enough|clear|sad|bad"
    r"|terrible|awful|sense"
    r"|weird|strange|idea|question|point|news|thanks|sweet|brilliant|it|work|well|surprising|impressive|odd"
    r"|easy|hard))*"
)
COURTESY = re.compile(
    r"(?:many )?(?:thanks|thank you)(?: so much| very much| a lot)? for (?:your|all|the (?:help|info"
    r"|information|tip|tips|update"
    r"|answer|explanation|quick)|this|that|asking|sharing|letting|telling|helping|everything|explaining"
    r"|clarifying|checking"
    r"|reminding)\b"
    r"|(?:please )?(?:just )?let me know\b|(?:please )?feel free to\b"
    r"|(?:i'd|i would) be (?:glad|happy|delighted|pleased) to\b|enjoy (?:your|the|it|yourself)\b|have (?:fun"
    r"|a safe)\b"
    r"|what an? \w+(?: \w+){0,2}$"
    r"|(?:i am|i'm|we're) (?:always )?(?:here|happy|glad|ready|delighted|pleased) to (?:help|assist|hear)\b"
    r"|(?:glad|happy|pleased) (?:to|i could|that i could) (?:help|hear|assist|be)\b"
    r"|see you (?:on|in|at|next|soon|then|tomorrow|later|tonight)\b(?: \w+)?$|talk to you\b"
    r"|looking forward to (?:it|that)$"
    r"|have (?:a|an) (?:\w+ )?(?:day|evening|weekend|night|trip|one|time|morning|afternoon)\b(?: \w+)?$"
    r"|(?:i'll|i will|i've|i have) (?:\w+ )?(?:remember|remembered|note|noted|save|saved|keep|kept|store|stored)"
    r" (?:that|it|this)(?: down| in mind| for you| for later| for next time)?$"
)

_WH = r"(?:what|who|whom|whose|where|when|why|how|which)"
_AUX = (
    r"(?:is|are|am|was|were|do|does|did|has|have|had|can|could|will|would|should|shall|may|might|must|isn't"
    r"|aren't|wasn't"
    r"|weren't|don't|doesn't|didn't|hasn't|haven't|hadn't|can't|cannot|couldn't|won't|wouldn't|shouldn't)"
)
_PRONOUN = (
    r"(?:i|you|u|ya|he|she|it|we|they|this|that|these|those|there|anyone|anybody|someone|somebody|everyone"
    r"|everything|anything)"
)
_NOUN_START = r"(?:my|your|his|her|our|their|the|any|all|some|both)"
_ASKED_OF_ASSISTANT = (
    r"tell me|show (?:me|us|it|them|that|this)|say (?:it|that) again|give (?:it|this|that) another|give me"
    r"|teach me|explain|describe|define|summari[sz]e|translate|recommend|suggest"
    r"|rephrase|rewrite"
    r"|paraphrase|elaborate|list (?:all|my|the|every|everything|some|your|five|ten|three)|remind me (?:what|who"
    r"|where|when|how|which|of|about"
    r"|why|whether|if|again)|write (?:me |us )?(?:a|an|another|some|the)|help me|find me|search|look up|compare"
    r"|calculate"
    r"|compute|convert|read me|sing|draw|generate|make me|name (?:a|an|some|three|five|ten|the|one)"
    r"|guess (?:what|who|where)\b"
)
QUESTION = re.compile(
    rf"(?:{_WH}$"
    rf"|(?:wher|were|whre|wich|whch|waht|wat|wht|whay|wen|whn|hwo|hw) (?:\w+ )?{_AUX}\b"  # slips of the fingers
    rf"|(?:what|who|whom|where|when|why|how)(?:'s|'re|'d|'ll|'ve)?s? ?(?<= ){_AUX}\b"
    r"|(?:what|who|where|when|how)(?:'s|'re|'d)\b|(?:whats|whos|wheres|whens|hows|whys)\b"
    r"|(?:what|how) (?:about|come|if|else|many|much|long|often|far|soon|old|to)\b|why (?:not|on|in|the)\b"
    rf"|what (?:time|day|date|year|kind|kinds|sort|type|color|colour|name|number|language)s?\b|how \w+ {_AUX}\b"
    r"|who(?:m)? (?!i |we )\w+|whose \w+|which (?!reminds|means|is|was|made|meant)\w+"
    rf"|what (?!a |an |i |we |he |she |they |it |my |our |his |her |matters|counts|bothers)\w+(?: {_AUX}|s?\b)"
    r"|(?:for )?how long\b|(?:where|when|what|which|how|who) (?!i |we |he |she |they |it |my |our |the )"
    r"(?:\w+ ){1,3}(?:does|do|did|has|have)\b"
    r"|did (?!the |my |some |not |it |a |an )\w+ (?:ever |already |really )?(?:call|come|say|tell|ask|write"
    r"|send|arrive"
    r"|leave|go|get|like|want|live|work|move|buy|pay|finish|mention|reply|answer|text|eat|sell|start|happen)\b"
    r"|has (?!been|never|always|just|already|also|not|now|since|recently|finally|a |an |the |two |three )\w+ "
    r"(?:ever |already |yet )?(?:called|come|said|told|asked|sent|arrived|left|gone|paid|finished|replied|answered"
    r"|written|moved|bought|started|happened)\b"
    rf"|(?:in |at |for |with |to |from |on |about )(?:what|which|whom|whose|where) {_AUX}?"
    rf"|(?:is|are|am|do|does|can|could|will|would|should|shall|may|might|isn't|aren't|don't|doesn't|can't"
    rf"|couldn't|won't"
    rf"|wouldn't|shouldn't|didn't|wasn't|weren't|haven't|hasn't) {_PRONOUN}\b"
    rf"|(?:is|are|does|do|can|could|will|would|should|isn't|aren't|doesn't|didn't|hasn't|has) {_NOUN_START} \w+"
    r"|(?:is|are) \w+ (?:\w+ing|still|at|in|on|a|an|the|my|from|married|open|free|ok|okay)\b"
    r"|(?:was|were|did|has|have|had) (?:i|you|he|she|it|we|they|there|anyone|someone|everyone)\b"
    r"|(?:did|does) (?:my|the|your|our) \w+ ever\b|(?:was|were) (?:my|the|your|our|that|this) \w+ \w+"
    r"|any (?!time\b|day\b)\w+|(?:any|some)(?:one|body) (?:know|knows|have|has|got|want|wants|up|here|else|who)\b"
    r"|anything (?:else|new|about|i|on)\b|got any\b"
    rf"|(?:please |kindly |just )?(?:{_ASKED_OF_ASSISTANT})\b"
    r"|i (?:wonder|am wondering|was wondering|am curious|want to (?:know|ask)|need to (?:know|ask)"
    r"|would like to (?:know|ask)"
    r"|have (?:a|another|some|one|two|\w+) (?:quick |other |more )?questions?)\b"
    r"|i'm (?:wondering|curious)\b|i'd (?:like|love) to (?:know|ask)\b"
    r"|(?:i'm|i am) (?:not sure|unsure) (?:what|who|where|when|how|which|why|if|whether|about)\b"
    r"|(?:i'm afraid |i am afraid )?(?:i'm |i am )?(?:sorry )?(?:but )?i (?:don't|do not|can't|cannot"
    r"|couldn't) (?:yet )?(?:know|recall|remember|find"
    r"|see|tell)"
    r" (?:(?:what|who|where|when|which|why|if|whether)\b|how (?!to)|you\b|your\b|that$|anything\b|any\b)"
    r"|i (?:don't|do not) (?:yet |currently )?have (?:any|enough|access|that|this|your|the)?\s?"
    r"(?:\w+ ){0,2}?(?:information|info|details|records?|data|memory|memories|access|notes?)\b"
    r"|do you|don't you|can you|could you|would you|will you)"
)
EXCLAMATION = re.compile(rf"how (?!{_AUX}|many|much|long|often|far|soon|old|about|come|to)\w+ (?!{_AUX})|what an? ")
INVERSION_WITH_NAME = re.compile(
    r"^(?i:(?:and|but|so|ok) )?(?i:is|are|does|did|can|could|will|would|should|has|was) [A-Z]\w+\b"
)
ASSERTION = re.compile(
    r"(?:i'm|i've|i'll|i'd|we're|we've|we'll|he's|she's|they're|it's|there's|im|ive)\s\w+"
    r"|(?:i|we|he|she|they|it)(?: also| just| really| never| always| usually| recently| finally)? "
    r"(?!want to know|would like|think you|hope you|mean\b|wonder|said what)[a-z']+\b(?: \w+|$)"
    r"|(?:my|our|his|her|their) (?:\w+ ){1,3}(?:is|are|was|were|has|had|have|will|can|can't|isn't|\w{2,}s"
    r"|\w{2,}ed|just)\b"
    r"|(?:just|recently|finally|currently) (?!wondering|curious|asking|checking)\w+(?:ed|ing|t|ght)\b \w+"
    r"|(?:moved|bought|got|started|lost|planning|looking for|travelling|traveling|visiting|going to) \w+"
    r"|(?:considering|given|now that) (?:that )?(?:i|i'm|i've|we|we're|we've|my|our)\b"
    r"|(?:there is|there are|this is|today is|tomorrow is)\b"
)
NAMED_ASSERTION = re.compile(
    r"(?:[A-Z]\w+ (?:and )?){1,3}(?:is|are|was|were|has|had|lives|works|likes|loves|hates|wants|needs|moved|got"
    r"|told|said"
    r"|comes|arrives|turns|just)\b"
)

